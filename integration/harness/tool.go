package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	tc "github.com/testcontainers/testcontainers-go"
	tcexec "github.com/testcontainers/testcontainers-go/exec"
)

// toolAddress is the address of a container that a test runs a program in; it has one at a time.
const toolAddress = 200

// Tool is a program that runs in a container of its own: of the cluster's image, in its network.
type Tool struct {
	cluster   *Cluster
	container *tc.DockerContainer
}

// RunTool starts a shell script with files beside it, which lie in /tool. The container goes with the test.
func (c *Cluster) RunTool(t testing.TB, files map[string][]byte, script string) *Tool {
	t.Helper()
	customize := request(c.network, "tool", address(c.subnet, toolAddress), nil, script)
	for name, content := range files {
		customize = append(customize, tc.WithFiles(tc.ContainerFile{Reader: bytes.NewReader(content), ContainerFilePath: "/tool/" + name, FileMode: 0o644}))
	}
	container, err := tc.Run(t.Context(), c.image, customize...)
	tool := &Tool{cluster: c, container: container}
	t.Cleanup(func() {
		if container == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := c.docker.ContainerRemove(ctx, container.GetContainerID(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil {
			t.Errorf("removing the container of a program: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("running a program in a container: %v", err)
	}
	return tool
}

// Output is what the program wrote so far, to standard output and standard error.
func (t *Tool) Output(ctx context.Context) string { return t.cluster.containerLog(ctx, t.container) }

// Ended says whether the program has come to its end, and with which exit code.
func (t *Tool) Ended(ctx context.Context) (code int, ended bool, err error) {
	state, err := t.container.State(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("asking for the state of a container: %w", err)
	}
	return state.ExitCode, !state.Running, nil
}

// RunJava starts a Java program that is one file and needs of Pulsar's jars only the client's interface to be compiled. The
// image's own Java compiles it where it can, else this machine's; without either the test is skipped.
func (c *Cluster) RunJava(t testing.TB, path string, args ...string) *Tool {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(path)
	files := map[string][]byte{name: source}
	target, classpath := "/tool/"+name, "'lib/*'"
	if !c.compiles(t) {
		class := strings.TrimSuffix(name, ".java")
		files[class+".class"] = c.compile(t, path, class)
		target, classpath = class, "/tool:'lib/*'"
	}
	const options = "-Xms32m -Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.net.preferIPv4Stack=true" +
		" -Dio.netty.tryReflectionSetAccessible=true --add-opens java.base/java.nio=ALL-UNNAMED --add-opens java.base/jdk.internal.misc=ALL-UNNAMED"
	return c.RunTool(t, files, fmt.Sprintf("cd /pulsar && exec java %s -Dpulsar.log.root.level=warn -cp %s %s '%s'", options, classpath, target, strings.Join(args, "' '")))
}

// compiles says whether the image's Java has a compiler.
func (c *Cluster) compiles(t testing.TB) bool {
	t.Helper()
	return strings.Contains(c.inBroker(t, "java --list-modules"), "jdk.compiler@")
}

// compile compiles a program to its one class with the compiler of this machine.
func (c *Cluster) compile(t testing.TB, path, class string) []byte {
	t.Helper()
	javac := "javac"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		javac = filepath.Join(home, "bin", "javac")
	}
	if _, err := exec.LookPath(javac); err != nil {
		all, _ := filepath.Glob("/usr/lib/jvm/*/bin/javac")
		if len(all) == 0 {
			t.Skip("neither the image's Java nor this machine has a compiler (javac)")
		}
		javac = all[0]
	}
	dir := t.TempDir()
	jar := filepath.Join(dir, "client-api.jar")
	if err := os.WriteFile(jar, []byte(c.inBroker(t, "cat /pulsar/lib/*pulsar-client-api-[0-9]*.jar")), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), javac, "--release", "17", "-cp", jar, "-d", dir, path).CombinedOutput(); err != nil {
		t.Fatalf("compiling %s: %v\n%s", path, err, out)
	}
	compiled, err := os.ReadFile(filepath.Join(dir, class+".class"))
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// inBroker is what a shell command prints in the container of a broker.
func (c *Cluster) inBroker(t testing.TB, command string) string {
	t.Helper()
	live := c.Live()
	if len(live) == 0 {
		t.Fatal("no broker is up")
	}
	code, r, err := live[0].container.Exec(t.Context(), []string{"sh", "-c", command + " 2>/dev/null"}, tcexec.Multiplexed())
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	out, err := io.ReadAll(r)
	if err != nil || code != 0 {
		t.Fatalf("%s: exit code %d, %v", command, code, err)
	}
	return string(out)
}
