// Package proctreetest starts processes of tests that are in a PID namespace, as those of a container are.
package proctreetest

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Container starts two processes in a PID namespace, of which the first one has mounted a directory. It returns the first one, and a
// function that reports that it has exited and returns after its exit. It is killed when the test ends. Users other than root need
// permission to create user namespaces.
func Container(t *testing.T, mounted string) (pid int, wait func() error) {
	t.Helper()
	const script = `mount --bind "$0" "$0" && { sleep 1000 & } && echo ready && exec sleep 1000`
	cmd := exec.Command("/bin/sh", "-c", script, mounted)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no user namespaces: %v", err)
	}
	exited := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	var exit error
	go func() {
		exit = cmd.Wait()
		close(exited)
	}()
	if line != "ready\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	return cmd.Process.Pid, func() error {
		<-exited
		return exit
	}
}
