package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// source knows the tests of a source tree.
type source struct {
	root, module string
	tests        map[string]map[string]bool // by package; nil = there is no such package
}

func newSource(root string) *source {
	s := &source{root: root, tests: make(map[string]map[string]bool)}
	if text, err := os.ReadFile(filepath.Join(root, "go.mod")); err == nil {
		if m := regexp.MustCompile(`(?m)^module\s+(\S+)`).FindSubmatch(text); m != nil {
			s.module = string(m[1])
		}
	}
	return s
}

// has says whether a package of the module has the test, or, for the test "", whether there is such a package.
func (s *source) has(pkg, test string) bool {
	tests, known := s.tests[pkg]
	if !known {
		tests = s.read(pkg)
		s.tests[pkg] = tests
	}
	return tests != nil && (test == "" || tests[test])
}

func (s *source) read(pkg string) map[string]bool {
	dir, inside := strings.CutPrefix(pkg+"/", s.module+"/")
	if !inside {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(s.root, dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil
	}
	tests := make(map[string]bool)
	for _, path := range files {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			continue // it does not build; the tests of its other files count
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
	}
	return tests
}
