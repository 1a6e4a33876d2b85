//go:build e2e

package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// plan is what a daemon in another process does.
type plan struct {
	Dir, Shim, Monitor string
	Scripts            map[string]string // by container name, all in the sandbox "pod"
}

// daemon runs an engine with containers in another process. Tests kill it.
func daemon(text string) error {
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	shimPath, monitorPath = p.Shim, p.Monitor
	ctx, w := context.Background(), envIn(p.Dir)
	e, err := Start(ctx, w.options())
	if err != nil {
		return err
	}
	s, err := e.StartSandbox(ctx, "pod", SandboxOptions{})
	if err != nil {
		return err
	}
	for id, script := range p.Scripts {
		if _, err := w.runContainer(ctx, s, id, script); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	select {}
}

// spawnDaemon starts a daemon, which prints a line when its containers run.
func (w *env) spawnDaemon(scripts map[string]string) (*exec.Cmd, io.Reader) {
	w.t.Helper()
	text, err := json.Marshal(plan{w.dir, shimPath, monitorPath, scripts})
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PODSTEAD_TEST_DAEMON="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, out
}

// startDaemon starts a daemon and returns when its containers run.
func (w *env) startDaemon(scripts map[string]string) *os.Process {
	w.t.Helper()
	cmd, out := w.spawnDaemon(scripts)
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		w.t.Fatalf("daemon: %s, %v", line, err)
	}
	return cmd.Process
}

// kill kills a process that the test started and waits for its exit.
func (w *env) kill(p *os.Process) {
	w.t.Helper()
	if err := p.Kill(); err != nil {
		w.t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		w.t.Fatal(err)
	}
}
