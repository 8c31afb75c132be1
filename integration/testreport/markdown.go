package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

type namedRun struct {
	name string
	*results
}

func writeMarkdown(path string, runs []namedRun) error {
	text := document(runs, fmt.Sprintf("%s, commit %s, %s on %s/%s with %d processors",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()))
	return os.WriteFile(path, []byte(text), 0o644)
}

// commit is the state of the source; the document itself does not count as a change.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changes, err := exec.Command("git", "status", "--porcelain", "--", ".", ":!docs/verification.md").Output()
	if err != nil || len(changes) > 0 {
		return strings.TrimSpace(string(hash)) + " with changes that are not committed"
	}
	return strings.TrimSpace(string(hash))
}

// document shows every test of the runs with its figures; a run that has none says so.
func document(runs []namedRun, circumstances string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Verification\n\nWritten by `make verify`: the tests against real clusters at their full length.\n\n%s.\n", circumstances)
	for _, run := range runs {
		fmt.Fprintf(&b, "\n## %s\n\n%v.\n\n| test | result | seconds | figures |\n|---|---|---|---|\n", run.name, run.counts())
		for _, t := range run.tests {
			if t.name == "" && t.outcome != "fail" {
				continue
			}
			var notes []string
			for _, f := range t.figures {
				notes = append(notes, f.name+": "+f.value)
			}
			if t.outcome == "skip" {
				notes = append(notes, t.reason())
			}
			name := strings.ReplaceAll(strings.TrimPrefix(t.name, "Test"), "_", " ")
			if t.name == "" {
				name = t.pkg
			}
			fmt.Fprintf(&b, "| %s | %s | %.1f | %s |\n", cell(name), words[t.outcome], t.elapsed, cell(strings.Join(notes, "; ")))
		}
	}
	return b.String()
}

var words = map[string]string{"pass": "passed", "fail": "**failed**", "skip": "skipped"}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
