package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// DefaultVersion is the version of Pulsar that the tests run on unless BALLAST_PULSAR_VERSION says otherwise.
const DefaultVersion = "4.2.4"

// ErrNoJDK says that the image cannot be made on this machine because a JDK that is new enough for it is missing. Tests
// skip on it, naming it.
var ErrNoJDK = errors.New("no suitable JDK")

// exitNoJDK is what deploy/image/build.sh exits with for that reason.
const exitNoJDK = 3

// Version is the version of Pulsar that is under test, as far as its image's name tells.
func Version() string {
	if image := os.Getenv("BALLAST_PULSAR_IMAGE"); image != "" {
		return image[strings.LastIndexByte(image, ':')+1:]
	}
	if version := os.Getenv("BALLAST_PULSAR_VERSION"); version != "" {
		return version
	}
	return DefaultVersion
}

// image gives the name of the image under test, having built it when it is one that is built here.
func image(ctx context.Context) (string, error) {
	if image := os.Getenv("BALLAST_PULSAR_IMAGE"); image != "" {
		return image, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "deploy", "image", "build.sh"), Version())
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == exitNoJDK {
		return "", fmt.Errorf("%w: %s", ErrNoJDK, lastLine(out))
	}
	if err != nil {
		return "", fmt.Errorf("building the image of Pulsar %s: %w\n%s", Version(), err, out)
	}
	return "ballast/pulsar:" + Version(), nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// moduleRoot finds the top of the source tree: tests run in the directory of their package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the source tree: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the source tree: no go.mod above the working directory")
		}
		dir = parent
	}
}
