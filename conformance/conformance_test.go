package conformance

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestVectors takes every recorded decision again. Each file holds the lines of one kind.
func TestVectors(t *testing.T) {
	for pulsar, dir := range map[string]string{Pulsar4: "testdata", Pulsar5: filepath.Join("testdata", "pulsar-5")} {
		files, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no vectors in %s: %v", dir, err)
		}
		for _, file := range files {
			t.Run(pulsar+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				report, err := RunFiles([]string{file}, pulsar)
				if err != nil {
					t.Fatal(err)
				}
				if len(report.Kinds) == 0 {
					t.Fatal("no lines")
				}
				if !report.OK() {
					t.Errorf("decisions differ from Pulsar %s:\n%s", pulsar, report)
				}
			})
		}
	}
}

// TestMoreVectors takes the decisions in the files that BALLAST_VECTORS names (a pattern) as the version that
// BALLAST_VECTORS_PULSAR names, 4.2.4 by default: for vectors of other seeds.
func TestMoreVectors(t *testing.T) {
	pattern := os.Getenv("BALLAST_VECTORS")
	if pattern == "" {
		t.Skip("BALLAST_VECTORS is not set")
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors match %s: %v", pattern, err)
	}
	report, err := RunFiles(files, os.Getenv("BALLAST_VECTORS_PULSAR"))
	if err != nil {
		t.Error(err)
	}
	if !report.OK() {
		t.Error("decisions differ")
	}
	t.Logf("Pulsar %s:\n%s", report.Pulsar, report)
}

// TestUnchanged5 takes the 4.2.4 decisions of the kinds that 5.0.1 was not recorded for as 5.0.1: they are the same.
func TestUnchanged5(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := filepath.Glob(filepath.Join("testdata", "pulsar-5", "*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	differs := make(map[string]bool)
	for _, file := range changed {
		differs[filepath.Base(file)] = true
	}
	for _, file := range files {
		if differs[filepath.Base(file)] {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			report, err := RunFiles([]string{file}, Pulsar5)
			if err != nil {
				t.Fatal(err)
			}
			if !report.OK() {
				t.Errorf("decisions differ from Pulsar %s:\n%s", Pulsar5, report)
			}
		})
	}
}

// TestAreasDisjoint holds that no kind is checked twice: one of the checks would be silently lost.
func TestAreasDisjoint(t *testing.T) {
	seen := make(map[string]bool)
	for _, area := range []map[string]Check{wireKinds, extensibleKinds, modularKinds} {
		for _, kind := range slices.Sorted(maps.Keys(area)) {
			if seen[kind] {
				t.Errorf("kind %s is in two areas", kind)
			}
			seen[kind] = true
		}
	}
}
