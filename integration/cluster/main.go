// Command cluster holds a Pulsar cluster in containers up for trying things by hand, or for as long as a command runs, which
// finds it in BALLAST_TEST_SERVICE_URL and BALLAST_TEST_ADMIN_URL.
//
//	cluster [-manager extensible|modular|simple] [-brokers 3] [-conf key=value]... [-- command...]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/ballast-lb/ballast/integration/harness"
)

func main() {
	options := harness.Options{Conf: map[string]string{}}
	flag.IntVar(&options.Brokers, "brokers", 3, "`number` of brokers")
	flag.Func("manager", "load `manager`: extensible (default), modular or simple", func(s string) error {
		for _, m := range []harness.Manager{harness.Extensible, harness.Modular, harness.Simple} {
			if strings.EqualFold(m.String(), s) {
				options.Manager = m
				return nil
			}
		}
		return errors.New("extensible, modular or simple")
	})
	flag.Func("conf", "`key=value` of broker.conf, repeated for more", func(s string) error {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("not key=value")
		}
		options.Conf[key] = value
		return nil
	})
	flag.Parse()
	if err := run(options, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			os.Exit(exit.ExitCode())
		}
		os.Exit(1)
	}
}

func run(options harness.Options, command []string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := harness.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	env := []string{"BALLAST_TEST_SERVICE_URL=" + c.ServiceURL(), "BALLAST_TEST_ADMIN_URL=" + c.AdminURL()}
	if len(command) == 0 {
		fmt.Printf("Pulsar %s, %s, %d brokers; interrupt to end it\nexport %s\nexport %s\n", harness.Version(), c.Manager(), len(c.Brokers()), env[0], env[1])
		<-ctx.Done()
		return nil
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.Run()
}
