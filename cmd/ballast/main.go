// Command ballast is an event-sourced load manager for Apache Pulsar: it follows a cluster through its system topics,
// explains what should move and why, and moves it when told to.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The exit codes.
const (
	exitOK      = 0
	exitError   = 1
	exitPlanned = 2 // plan: there is something to do
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) }) // a second Ctrl-C ends the process at once
	code := make(chan int, 1)
	go func() { code <- run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr) }()
	c := ended(ctx, code, stopLimit(os.Args[1:]), os.Stderr)
	stop()
	os.Exit(c)
}

// stopLimit is how long a command may take to end when it is told to stop: one that only looks has nothing to put in order, and the
// client library gives up a connection that is not answered only after half a minute. 0 = as long as it needs.
func stopLimit(args []string) time.Duration {
	cmd, _, err := newRoot(&app{}).Find(args)
	switch {
	case err != nil:
		return 0
	case slices.Contains([]string{"run", "release", "pause", "resume", "approve", "discard", "undrain"}, cmd.Name()):
		return 0
	case slices.ContainsFunc(args, func(s string) bool { return strings.HasPrefix(s, "--execute") }):
		return 0
	}
	return 3 * time.Second
}

// ended waits for the program's exit code, after ctx has ended no longer than the limit.
func ended(ctx context.Context, code <-chan int, limit time.Duration, stderr io.Writer) int {
	if limit == 0 {
		return <-code
	}
	select {
	case c := <-code:
		return c
	case <-ctx.Done():
	}
	select {
	case c := <-code:
		return c
	case <-time.After(limit):
		fmt.Fprintln(stderr, "error: stopped while the cluster had not answered")
		return exitError
	}
}

// exitCode ends the program with a code and without a message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run is the whole program with everything that it depends on passed in.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := newRoot(&app{environ: environ, stdout: stdout, stderr: stderr})
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitOK // stopped by the user
	}
	fmt.Fprintln(stderr, "error:", err)
	return exitError
}
