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
	"syscall"
)

// The exit codes.
const (
	exitOK      = 0
	exitError   = 1
	exitPlanned = 2 // plan: there is something to do
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
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
