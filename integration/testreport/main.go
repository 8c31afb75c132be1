// Command testreport makes what `go test -json` says readable, counts it and turns it into a document.
//
//	go test -json ./... | testreport -save unit.json     shows failures, skips and slow tests as they end
//	testreport [-markdown FILE] [NAME=]unit.json...      the sum of saved runs, its last line "N passed, N failed, N skipped"
//
// Tests and subtests count. A package that fails without a failed test (it does not build, it panics) counts as one failed
// test, and so does a test that never came to its end. The exit code is 1 if anything failed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	save := flag.String("save", "", "`file` that keeps the events read from standard input")
	markdown := flag.String("markdown", "", "`file` to write as a document about the saved runs")
	flag.Parse()
	ok, err := run(*save, *markdown, flag.Args(), os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(save, markdown string, args []string, stdin io.Reader, stdout io.Writer) (ok bool, err error) {
	if len(args) == 0 {
		if save != "" {
			file, err := os.Create(save)
			if err != nil {
				return false, err
			}
			defer file.Close()
			stdin = io.TeeReader(stdin, file)
		}
		r, err := read(stdin, stdout)
		return err == nil && r.counts().failed == 0, err
	}
	var sum counts
	var runs []namedRun
	for _, arg := range args {
		name, path, named := strings.Cut(arg, "=")
		if !named {
			path = name
		}
		r, err := readFile(path)
		if err != nil {
			return false, err
		}
		runs = append(runs, namedRun{name, r})
		sum.add(r.counts())
	}
	if markdown != "" {
		if err := writeMarkdown(markdown, runs); err != nil {
			return false, err
		}
	}
	fmt.Fprintln(stdout, sum)
	return sum.failed == 0, nil
}

func readFile(path string) (*results, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return read(file, io.Discard)
}
