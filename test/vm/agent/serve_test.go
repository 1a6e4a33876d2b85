package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/test/vm/internal/wire"
)

// host connects to an agent and returns a function that runs a command.
func host(t *testing.T) func(c wire.Command) (wire.End, string) {
	t.Helper()
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- answer(context.Background(), far) }()
	t.Cleanup(func() {
		if err := near.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("agent after the host disconnected: %v", err)
		}
	})
	answers, id := json.NewDecoder(near), 0
	return func(c wire.Command) (wire.End, string) {
		id++
		c.ID = id
		var out strings.Builder
		end, err := wire.Ask(near, answers, c, &out)
		if err != nil {
			t.Fatal(err)
		}
		return end, out.String()
	}
}

func TestAnswer(t *testing.T) {
	ask := host(t)
	for _, test := range []struct {
		name    string
		command wire.Command
		status  int
		err     string
		output  string
	}{
		{"success", wire.Command{Args: []string{"true"}, Timeout: time.Minute}, 0, "", ""},
		{
			"output and error",
			wire.Command{Args: []string{"sh", "-c", "echo $A; echo b >&2"}, Env: []string{"A=a"}, Timeout: time.Minute},
			0, "", "a\nb\n",
		},
		{"exit status", wire.Command{Args: []string{"sh", "-c", "exit 7"}, Timeout: time.Minute}, 7, "exit status 7", ""},
		{"signal", wire.Command{Args: []string{"sh", "-c", "kill -TERM $$"}, Timeout: time.Minute}, -1, "signal: terminated", ""},
		{"no such program", wire.Command{Args: []string{"no-such-program"}, Timeout: time.Minute}, -1, "no-such-program", ""},
		{"no arguments", wire.Command{Timeout: time.Minute}, -1, "no program given", ""},
		{
			"timeout, with its children",
			wire.Command{Args: []string{"sh", "-c", "echo begun; sleep 1000 & wait"}, Timeout: 5 * time.Second},
			-1, "killed after 5s",
			"begun\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			end, output := ask(test.command)
			if end.Status != test.status || !strings.Contains(end.Error, test.err) || (end.Error == "") != (test.err == "") ||
				output != test.output {
				t.Errorf("%+v with %q, want %d, %q, %q", end, output, test.status, test.err, test.output)
			}
		})
	}
}

func TestAnswerToInvalidInput(t *testing.T) {
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- answer(context.Background(), far) }()
	if _, err := near.Write([]byte("nonsense\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), "read command") {
		t.Errorf("got %v", err)
	}
}

// TestAskSkipsOtherAnswers: answers to an earlier command that timed out are ignored.
func TestAskSkipsOtherAnswers(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		_ = json.NewDecoder(far).Decode(&wire.Command{})
		enc := json.NewEncoder(far)
		for _, a := range []wire.Answer{
			{ID: 1, Output: []byte("old")}, {ID: 1, End: &wire.End{Status: 9}}, {ID: 2, Output: []byte("new")}, {ID: 2, End: &wire.End{}},
		} {
			_ = enc.Encode(a) // the test fails if an answer is missing
		}
	}()
	var out strings.Builder
	end, err := wire.Ask(near, json.NewDecoder(near), wire.Command{ID: 2}, &out)
	if err != nil || end != (wire.End{}) || out.String() != "new" {
		t.Errorf("%+v, %v, %q", end, err, out.String())
	}
}

func TestFindPort(t *testing.T) {
	class := t.TempDir()
	for dir, name := range map[string]string{"vport1p1": "other\n", "vport1p2": wire.Port + "\n"} {
		if err := os.Mkdir(filepath.Join(class, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(class, dir, "name"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := findPort(class, wire.Port); got != "/dev/vport1p2" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := findPort(t.TempDir(), wire.Port); err == nil {
		t.Error("no error without a port")
	}
}
