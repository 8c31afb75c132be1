package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/strategies"
)

// TestKeys holds the tables of keys against the settings: each key exists and has that default and unit, and all keys that the
// code of a page reads are on it. (What reads usage reads the weights, which page usage.md explains.)
func TestKeys(t *testing.T) {
	for _, path := range pages(t) {
		text := read(t, path)
		named := make(map[string]bool)
		for _, row := range rows(text, "| key | default |") {
			name := unquote(row[0])
			named[name] = true
			k, ok := settings.Lookup(name)
			if !ok {
				t.Errorf("%s: there is no key %q; nearest is %q", path, name, settings.Suggest(name))
				continue
			}
			if want := defaults(k); row[1] != want {
				t.Errorf("%s: default of %s is %s, the page says %s", path, name, want, row[1])
			}
			if row[2] != k.Unit {
				t.Errorf("%s: unit of %s is %q, the page says %q", path, name, k.Unit, row[2])
			}
		}
		for _, source := range sources(t, path, text) {
			keys, usage := reads(t, source)
			for _, key := range keys {
				if !named[key] {
					t.Errorf("%s: %s reads %s, which is not in the table of keys", path, source, key)
				}
			}
			if usage && !named["loadBalancerCPUResourceWeight"] && !strings.Contains(text, "(usage.md)") {
				t.Errorf("%s: %s reads weighted usage, but the page does not link to usage.md", path, source)
			}
		}
	}
}

// TestNamesInPages: what looks like a key is one, or a repair.
func TestNamesInPages(t *testing.T) {
	known := make(map[string]bool)
	for _, name := range strategies.Repairs() {
		known[name] = true
	}
	like := regexp.MustCompile("`((?:load[BM]|maxUnload|minUnload|lowerB|ballast|flowOrQps|defaultN|supported)[A-Za-z0-9]+)(?:[=`])")
	all := append(pages(t), "cases.md")
	for _, path := range all {
		for _, m := range like.FindAllStringSubmatch(read(t, path), -1) {
			if _, ok := settings.Lookup(m[1]); !ok && !known[m[1]] {
				t.Errorf("%s: %s is no key", path, m[1])
			}
		}
	}
}

func defaults(k settings.Key) string {
	a, b := quote(k.Default), quote(k.Default5)
	if a == b {
		return a
	}
	return a + "; Pulsar 5: " + b
}

func quote(text string) string {
	if text == "" {
		return "none"
	}
	return "`" + text + "`"
}

func unquote(cell string) string { return strings.Trim(cell, "`") }

// rows are the cells of the rows of every table whose header begins so.
func rows(text, header string) [][]string {
	var out [][]string
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, header):
			in = true
		case !strings.HasPrefix(line, "|"):
			in = false
		case in && !strings.HasPrefix(line, "|---"):
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			out = append(out, cells)
		}
	}
	return out
}

// sources are the Go files that a page names after "Code:".
func sources(t *testing.T, path, text string) []string {
	t.Helper()
	_, text, _ = strings.Cut(text, "\nCode: ")
	text, _, _ = strings.Cut(text, "\n\n")
	var out []string
	for _, m := range regexp.MustCompile(`\((\.\./[^)]+\.go)\)`).FindAllStringSubmatch(text, -1) {
		out = append(out, filepath.Join(filepath.Dir(path), m[1]))
	}
	return out
}

// reads are the keys that a Go file reads from the settings, and whether it asks for weighted usage.
func reads(t *testing.T, path string) (keys []string, usage bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	fields, seen := reflect.TypeFor[settings.Settings](), make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.SelectorExpr:
			f, ok := fields.FieldByName(x.Sel.Name)
			if key := f.Tag.Get("key"); ok && !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
			usage = usage || x.Sel.Name == "WeightsOf"
		case *ast.Ident:
			usage = usage || x.Name == "weightedUsage" || x.Name == "newOverloadTest"
		}
		return true
	})
	return keys, usage
}
