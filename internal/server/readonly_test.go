package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// reply is the response to a request of another process.
type reply struct {
	Status int
	Text   string
}

// ask sends a request for every endpoint of the table, and returns the responses by pattern.
func ask(socket string) (map[string]reply, error) {
	client := &http.Client{Timeout: testTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	replies := map[string]reply{}
	for _, e := range server.Endpoints() {
		path := strings.NewReplacer("{name}", "web", "{id}", "s", "{type...}", "example.org/door").Replace(e.Path)
		r, err := http.NewRequest(e.Method, "http://podstead"+path, strings.NewReader("{}"))
		if err != nil {
			return nil, err
		}
		response, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return nil, err
		}
		replies[e.Pattern()] = reply{response.StatusCode, string(text)}
	}
	return replies, nil
}

// askVariable is the environment variable with the socket for a child process of [TestReadOnlySocketOfOtherUsers].
const askVariable = "PODSTEAD_TEST_ASK"

// TestAsk is the program of that child process.
func TestAsk(t *testing.T) {
	t.Parallel()
	socket := os.Getenv(askVariable)
	if socket == "" {
		return
	}
	replies, err := ask(socket)
	switch {
	case errors.Is(err, fs.ErrPermission):
		fmt.Println("REPLIES null")
	case err != nil:
		t.Fatal(err)
	default:
		text, err := json.Marshal(replies)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("REPLIES %s\n", text)
	}
}

// password is in places of a pod where it must not be shown to a reader.
const password = "hunter2-of-the-shop"

// unquoted is a password without quotes in a file that is refused.
const unquoted = "918273645"

// newReadableDaemon returns a daemon with a pod whose environment and secrets have the password, and whose file has changed. The newest
// file of the pod and that of another pod are invalid, because a password is a number.
func newReadableDaemon(t *testing.T) *testDaemon {
	t.Helper()
	d := newTestDaemon(t, fakeruntime.Options{})
	text := "name = \"web\"\nimageArchives = [\"i.tar\"]\n[[secrets]]\nname = \"shop\"\ndata.password = \"" + password + "\"\n" +
		app("main", "exec sleep inf") + "env = [{ name = \"PASSWORD\", value = \"" + password +
		"\" }, { name = \"S\", valueFrom = { secretKeyRef = { name = \"shop\", key = \"password\" } } }]\n"
	if _, err := d.client.Apply(t.Context(), api.ApplyRequest{File: "/pods/web.toml", Text: text}); err != nil {
		t.Fatal(err)
	}
	d.files.Changes = []change.Change{{
		Path: "containers[0].env[0].value", Container: "main", Old: password, New: password + "!", Diff: "-" + password,
	}}
	if _, err := d.client.Apply(t.Context(),
		api.ApplyRequest{File: "/pods/web.toml", Text: strings.ReplaceAll(text, "name = \"PASSWORD\"", "name=\"PASSWORD\"")}); err != nil {
		t.Fatal(err)
	}
	d.files.Judge("web", api.GenerationReady, "")
	if r, err := d.client.Rollout(t.Context(), "web"); err != nil || len(r.Generations) != 2 ||
		r.Generations[1].Changes[0].Old != password {
		t.Fatalf("rollout: %+v, %v", r, err)
	}
	for _, name := range []string{"web", "bad"} {
		path := "/pods.d/" + name + ".toml"
		_, found := spec.Parse(path, []byte(app("main", "exec sleep inf")+"env.PASSWORD = "+unquoted+"\n"))
		if len(found.Errors()) != 1 {
			t.Fatalf("problems: %v", found)
		}
		d.files.Refuse(podfiles.File{Path: path, Pod: name, Reason: api.ReasonInvalidFile, Problems: found})
	}
	return d
}

// checkReplies compares the responses with the table of endpoints.
func checkReplies(t *testing.T, d *testDaemon, replies map[string]reply) {
	t.Helper()
	reads := 0
	for _, e := range server.Endpoints() {
		got := replies[e.Pattern()]
		switch {
		case e.ReadOnly && got.Status != http.StatusOK:
			t.Errorf("%s: %d %s", e.Pattern(), got.Status, got.Text)
		case !e.ReadOnly &&
			(got.Status != http.StatusForbidden || !strings.Contains(got.Text, `"reason":"Forbidden"`) ||
				!strings.Contains(got.Text, "use the socket "+d.socket+" as root")):
			t.Errorf("%s: %d %s, want 403 with a hint", e.Pattern(), got.Status, got.Text)
		case strings.Contains(got.Text, password), strings.Contains(got.Text, unquoted):
			t.Errorf("%s shows the password: %s", e.Pattern(), got.Text)
		case e.ReadOnly:
			reads++
		}
	}
	for _, pattern := range []string{"GET /v1/pods", "GET /v1/pods/{name}", "GET /v1/pods/{name}/why", "GET /v1/why"} {
		if text := replies[pattern].Text; !strings.Contains(text, "containers[0].env.PASSWORD: must be a string, found integer") {
			t.Errorf("%s does not show why the file is refused: %s", pattern, text)
		}
	}
	if text := replies["GET /v1/pods/{name}"].Text; reads == 0 || !strings.Contains(text, api.Hidden) ||
		!strings.Contains(text, `"PASSWORD"`) {
		t.Errorf("the pod is %s, want the names of its variables", text)
	}
	if pod, err := d.client.Pod(t.Context(), "web"); err != nil || pod.Spec.Containers[0].Env[0].Value != password {
		t.Errorf("the API socket shows %+v, %v", pod.Spec.Containers, err)
	}
}

// TestReadOnlySocket sends a request for every endpoint over the read-only socket.
func TestReadOnlySocket(t *testing.T) {
	t.Parallel()
	d := newReadableDaemon(t)
	replies, err := ask(d.socket + "-ro")
	if err != nil {
		t.Fatal(err)
	}
	checkReplies(t, d, replies)
}

// TestReadOnlyWatch requires that a watch hides the same values.
func TestReadOnlyWatch(t *testing.T) {
	t.Parallel()
	d := newReadableDaemon(t)
	reader := client.New(d.socket+"-ro", "podstead get")
	defer reader.Close()
	for change, err := range reader.Watch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Object.Metadata.Name != "web" {
			continue
		}
		if value := change.Object.Spec.Containers[0].Env[0].Value; value != api.Hidden {
			t.Errorf("the watch shows %q", value)
		}
		return
	}
}

// TestReadOnlySocketOfOtherUsers uses the read-only socket as a user who is not root: as a member of its group, and as a user who is not.
func TestReadOnlySocketOfOtherUsers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("requires root, to become another user; TestReadOnlySocket checks the same over the socket of this user")
	}
	const uid, gid = 54321, 54322
	d := newReadableDaemon(t)
	program := childProgram(t)
	if err := errors.Join(os.Chmod(d.dir, 0o755), os.Chown(d.socket+"-ro", 0, gid)); err != nil {
		t.Fatal(err)
	}
	run := func(socket string, gid uint32) map[string]reply {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestAsk$")
		cmd.Env = append(os.Environ(), askVariable+"="+socket)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
		out, err := cmd.CombinedOutput()
		_, line, found := strings.Cut(string(out), "REPLIES ")
		line, _, _ = strings.Cut(line, "\n")
		var replies map[string]reply
		if err != nil || !found || json.Unmarshal([]byte(line), &replies) != nil {
			t.Fatalf("child: %v\n%s", err, out)
		}
		return replies
	}
	checkReplies(t, d, run(d.socket+"-ro", gid))
	if replies := run(d.socket+"-ro", gid+1); replies != nil {
		t.Errorf("a user who is not in the group has access: %v", replies)
	}
	if replies := run(d.socket, gid); replies != nil {
		t.Errorf("a member of the group of the read-only socket has access to the other one: %v", replies)
	}
}

// childProgram copies this program to where other users can execute it.
func childProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "child")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "api.test")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, text, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadersDoNotHoldTheDaemon requires that requests over the read-only socket do not count as activity.
func TestReadersDoNotHoldTheDaemon(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	follow := func(socket string) {
		c := client.New(socket, "podstead events")
		t.Cleanup(c.Close)
		received := make(chan struct{})
		go func() {
			q := client.EventQuery{Follow: true}
			close(received)
			for _, err := range c.Events(t.Context(), &q) {
				_ = err
			}
		}()
		<-received
	}
	follow(d.socket + "-ro")
	reader := client.New(d.socket+"-ro", "podstead get")
	defer reader.Close()
	for range 20 {
		if _, err := reader.Pods(t.Context()); err != nil {
			t.Fatal(err)
		}
		if busy, _ := d.server.Busy(); busy {
			t.Fatal("a reader keeps the daemon busy")
		}
	}
	follow(d.socket)
	for deadline := time.Now().Add(testTimeout); ; {
		busy, changed := d.server.Busy()
		if busy {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Until(deadline)):
			t.Fatal("a client of the API socket does not keep the daemon busy")
		}
	}
}
