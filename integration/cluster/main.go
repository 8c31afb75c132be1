// Command cluster holds a Pulsar cluster in containers up for trying things by hand, or for as long as a command runs. What
// the command needs to know is in its environment:
//
//	BALLAST_TEST_SERVICE_URL  pulsar:// URL with the addresses of all brokers
//	BALLAST_TEST_ADMIN_URL    http:// URL, the same
//	BALLAST_TEST_BROKER       a command that kills and starts brokers: "kill N" and "start N", N from 1 in the order of the addresses
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
	"path/filepath"
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
	dir, err := os.MkdirTemp("", "ballast-cluster")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "broker")
	var hosts []string
	var containers strings.Builder
	for i, b := range c.Brokers() {
		hosts = append(hosts, b.ID)
		fmt.Fprintf(&containers, "%d) id=%s ;;\n", i+1, b.ContainerID())
	}
	text := "#!/bin/sh\ncase $2 in\n" + containers.String() + "*) echo \"no broker $2\" >&2; exit 2 ;;\nesac\nexec docker \"$1\" \"$id\"\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		return err
	}
	env := []string{"BALLAST_TEST_SERVICE_URL=" + c.ServiceURL(), "BALLAST_TEST_ADMIN_URL=http://" + strings.Join(hosts, ","), "BALLAST_TEST_BROKER=" + script}
	if len(command) == 0 {
		fmt.Printf("Pulsar %s, %s, %d brokers; interrupt to end it\nexport %s\n", harness.Version(), c.Manager(), len(c.Brokers()), strings.Join(env, "\nexport "))
		<-ctx.Done()
		return nil
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.Run()
}
