package main

import (
	"fmt"
	"slices"
	"strings"
)

// inMemory is the version of the tests that need no Pulsar.
const inMemory = "memory"

// markdown shows every test with its figures, and the time and source that they are of.
func (d *verification) markdown() string {
	var b strings.Builder
	b.WriteString(`# Verification

Written by ` + "`make verify`" + `, from [verification.json](verification.json): the tests against real clusters at their full length,
and those in memory that try every point or many thousand seeds. Each row is the latest run of its test on that version of Pulsar, with the commit that was tested.
`)
	for _, v := range d.Versions {
		heading := "Pulsar " + v.Version
		if v.Version == inMemory {
			heading = "In memory"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%v. Ran on %s.\n\n", heading, v.counts(), strings.Join(v.machines(), "; "))
		b.WriteString("| test | result | seconds | figures | date | commit |\n|---|---|---|---|---|---|\n")
		for _, r := range v.Tests {
			fmt.Fprintf(&b, "| %s | %s | %.1f | %s | %s | %s |\n", cell(r.title()), words[r.Result], r.Seconds, cell(r.notes()),
				strings.TrimSuffix(strings.Replace(r.Date, "T", " ", 1), "Z"), cell(r.Commit))
		}
	}
	return b.String()
}

func (v *verified) counts() counts {
	var c counts
	for _, r := range v.Tests {
		switch r.Result {
		case "pass":
			c.passed++
		case "skip":
			c.skipped++
		default:
			c.failed++
		}
	}
	return c
}

// machines are the places where the rows ran, in order, each once.
func (v *verified) machines() []string {
	var all []string
	for _, r := range v.Tests {
		if r.Machine != "" && !slices.Contains(all, r.Machine) {
			all = append(all, r.Machine)
		}
	}
	if len(all) == 0 {
		return []string{"an unknown machine"}
	}
	return all
}

// title is the name of a test for readers. Tests of the package integration stand without their package.
func (r row) title() string {
	pkg := r.Package
	if _, inside, found := strings.Cut(pkg, "/ballast/"); found {
		pkg = inside
	}
	name := strings.ReplaceAll(strings.TrimPrefix(r.Test, "Test"), "_", " ")
	switch {
	case name == "":
		return "package " + pkg
	case pkg == "integration":
		return name
	}
	return pkg + ": " + name
}

// notes are a test's figures, and why it was skipped.
func (r row) notes() string {
	var notes []string
	for _, f := range r.Figures {
		notes = append(notes, f.Name+": "+f.Value)
	}
	if r.Reason != "" {
		notes = append(notes, r.Reason)
	}
	return strings.Join(notes, "; ")
}

var words = map[string]string{"pass": "passed", "fail": "**failed**", "skip": "skipped"}

func cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ") }
