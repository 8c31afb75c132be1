// Command testreport makes what `go test -json` says readable, counts it and keeps it in the document about verification.
//
//	go test -json ./... | testreport -save unit.json        shows failures, skips and slow tests as they end
//	testreport unit.json... | a.json+again.json             the sum of saved runs, its last line "N passed, N failed, N skipped";
//	                                                        what failed in a run and ran again counts as in the later one
//	testreport -again unit.json                             the tests that failed, as a pattern for `go test -run`; the exit code
//	                                                        is 1 if there is none to run again
//	testreport -merge VERSION=FILE... [-commit HASH] [-date DATE] [-machine WORDS]
//	                                                        takes saved runs on a version of Pulsar (memory: on none) into
//	                                                        docs/verification.json and writes docs/verification.md from it
//	testreport -render                                      writes docs/verification.md anew, without tests that are gone
//
// Tests and subtests count. A package that fails without a failed test (it does not build, it panics) counts as one failed
// test, and so does a test that never came to its end. The exit code is 1 if anything failed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	save     string
	merge    []string // VERSION=FILE
	render   bool
	again    bool
	document string // path of the document without .json and .md
	root     string // of the source tree
	run
	files []string
}

func main() {
	o := options{root: "."}
	flag.StringVar(&o.save, "save", "", "`file` that keeps the events read from standard input")
	flag.Func("merge", "`VERSION=FILE`: takes the events of a file into the document; may be given several times", func(s string) error {
		o.merge = append(o.merge, s)
		return nil
	})
	flag.BoolVar(&o.render, "render", false, "writes the document anew from its .json, without tests that are gone")
	flag.BoolVar(&o.again, "again", false, "shows the tests that failed as a pattern for go test -run")
	flag.StringVar(&o.document, "document", "docs/verification", "`path` of the document without .json and .md")
	flag.StringVar(&o.commit, "commit", "", "`hash` of the source that was tested (default: what is checked out)")
	flag.Func("date", "`time` of the run, as 2026-11-30 or 2026-11-30T02:40Z (default: that of the first event)", func(s string) (err error) {
		o.date, err = parseDate(s)
		return err
	})
	flag.StringVar(&o.machine, "machine", fmt.Sprintf("%s %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU()), "`words` about where it ran")
	flag.Parse()
	o.files = flag.Args()
	ok, err := o.do(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func (o options) do(stdin io.Reader, stdout io.Writer) (ok bool, err error) {
	switch {
	case len(o.merge) > 0 || o.render:
		if len(o.files) > 0 || o.save != "" {
			return false, fmt.Errorf("-merge and -render take neither -save nor further files (%v)", o.files)
		}
		return o.mergeAll(stdout)
	case o.again:
		if len(o.files) != 1 {
			return false, fmt.Errorf("-again takes the file of one run, not %d (%v)", len(o.files), o.files)
		}
		r, err := readFile(o.files[0])
		if err != nil {
			return false, err
		}
		pattern, ok := r.again()
		if ok {
			fmt.Fprintln(stdout, pattern)
		}
		return ok, nil
	case len(o.files) > 0:
		return sum(o.files, stdout)
	}
	if o.save != "" {
		file, err := os.Create(o.save)
		if err != nil {
			return false, err
		}
		defer file.Close()
		stdin = io.TeeReader(stdin, file)
	}
	r, err := read(stdin, stdout)
	return err == nil && r.counts().failed == 0, err
}

// sum counts runs; each is a file, or several with a + between them: a run, and what ran again after it.
func sum(runs []string, stdout io.Writer) (ok bool, err error) {
	var sum counts
	var failures strings.Builder // after all that is only unsteady
	for _, paths := range runs {
		all := &results{index: map[[2]string]*test{}}
		for path := range strings.SplitSeq(paths, "+") {
			r, err := readFile(path)
			if err != nil {
				return false, err
			}
			all.repeat(r)
		}
		all.tell(stdout, &failures)
		sum.add(all.counts())
	}
	fmt.Fprint(stdout, failures.String())
	fmt.Fprintln(stdout, sum)
	return sum.failed == 0, nil
}

// mergeAll takes the runs that -merge names into the document.
func (o options) mergeAll(stdout io.Writer) (ok bool, err error) {
	d, err := load(o.document + ".json")
	if err != nil {
		return false, err
	}
	if o.commit == "" {
		o.commit = checkedOut(o.root)
	}
	var sum counts
	for _, arg := range o.merge {
		version, path, named := strings.Cut(arg, "=")
		if !named || path == "" {
			return false, fmt.Errorf("-merge %s: it should be VERSION=FILE, like 4.2.4=events.json", arg)
		}
		r, err := readFile(path)
		if err != nil {
			return false, err
		}
		run := o.run
		if run.date.IsZero() {
			run.date = r.began
		}
		if run.date.IsZero() {
			run.date = time.Now()
		}
		if err := d.merge(version, r, run); err != nil {
			return false, fmt.Errorf("-merge %s: %w", arg, err)
		}
		sum.add(r.counts())
	}
	d.tidy(newSource(o.root).has)
	if err := d.write(o.document); err != nil {
		return false, err
	}
	if len(o.merge) > 0 {
		fmt.Fprintln(stdout, sum)
	}
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
