//go:build vm

package vm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/installed"
)

// stackFiles is the directory of the Compose file, which TestStacks of test/faults has, too.
const stackFiles = "test/faults/testdata/stack"

// The database starts late, so that an application that does not wait for it fails and is restarted.
const dbCommand, lateCommand = "    command: db\n", "    command: sh -c \"sleep 6; exec db\"\n"

// dependsOn has the services whose health another service waits for.
var dependsOn = map[string][]string{"app": {"db", "cache"}, "cache": nil, "db": nil, "proxy": {"app"}}

// TestStack runs PostgreSQL, Redis, an application and nginx from a Compose file. After a reboot, and after a power cut, each of them
// starts once, when those that it depends on are healthy, and no row of the database is lost.
func TestStack(t *testing.T) {
	dir := filepath.Join(tempDir(t), "stack")
	writeStack(t, dir)
	image := filepath.Join(repository, ".cache", "stack", "image.tar")
	if _, err := os.Stat(image); err != nil {
		t.Fatalf("%v: run sudo .ci/deps vm", err)
	}
	s := &stack{Host: newInstalled(t, dir, image)}
	s.Sh("podstead image import " + payload + "/image.tar; rm " + payload + "/image.tar")
	s.Sh("podstead up -d --wait --timeout " + deadline.String() + " " + payload + "/stack/compose.yaml; sync")
	s.answers()
	s.started(0)

	s.Reboot()
	s.answers()
	s.started(1)

	s.Cut()
	s.answers()
	s.started(2)

	s.Sh("podstead down --volumes " + payload + "/stack/compose.yaml")
	if rest := s.Sh("podstead get -o name; podstead volume ls -o name"); rest != "" {
		t.Errorf("after going down, there are still\n%s", rest)
	}
}

// writeStack writes the files of the Compose project.
func writeStack(t *testing.T, dir string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join(repository, stackFiles, "compose.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := os.ReadFile(filepath.Join(repository, stackFiles, "nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	late := 0
	for _, file := range append(archive.Files, txtar.File{Name: "nginx.conf", Data: conf}) {
		late += bytes.Count(file.Data, []byte(dbCommand))
		text := bytes.ReplaceAll(file.Data, []byte(dbCommand), []byte(lateCommand))
		if err := os.WriteFile(filepath.Join(dir, file.Name), text, 0o644); err != nil { // a container reads it as another user
			t.Fatal(err)
		}
	}
	if late != 1 {
		t.Fatalf("the project has %q %d times, want once", dbCommand, late)
	}
}

// stack is a host that runs the Compose project.
type stack struct {
	*installed.Host
	rows int // of the database, at least
}

// page is the response of the application. The key is from a secret.
var page = regexp.MustCompile(`(?m)^version 1, key sesame, rows (\d+)$`)

// answers waits until the port of the host has a response of the application, which has inserted one row more into the database.
func (s *stack) answers() {
	s.Helper()
	const file = "/tmp/answer"
	s.Eventually("the application responds", `timeout 60 bash -c 'exec 3<>/dev/tcp/127.0.0.1/18080; printf "GET / HTTP/1.0\r\n\r\n" >&3
		cat <&3' > `+file+`; cat `+file+`; grep -q '^version ' `+file)
	text := s.Sh("cat " + file)
	match := page.FindStringSubmatch(text)
	if match == nil {
		s.Fatalf("response %q, want one like %s", text, page)
	}
	rows, err := strconv.Atoi(match[1])
	if err != nil || rows <= s.rows {
		s.Errorf("%s rows, want more than %d", match[1], s.rows)
	}
	s.rows = rows
}

// started waits until all pods are ready, and checks that each container was restarted as often as the host was booted again, and that it
// was started when the pods that it depends on were ready.
func (s *stack) started(boots int) {
	s.Helper()
	const file = "/tmp/pods"
	s.Eventually("all pods are ready", `podstead get; podstead wait --all --for=condition=Ready --timeout=60s`)
	var list api.PodList
	if err := json.Unmarshal([]byte(s.Sh("podstead get -o json > "+file+"; cat "+file)), &list); err != nil {
		s.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	starts, ready := map[string]time.Time{}, map[string]time.Time{}
	for name := range dependsOn {
		want[name] = fmt.Sprintf("running, restarts %d", boots)
	}
	for _, p := range list.Items {
		name := p.Metadata.Name
		for _, c := range p.Status.ContainerStatuses {
			got[name] += fmt.Sprintf("%s, restarts %d", stateOf(c), c.RestartCount)
			if c.State.Running != nil {
				starts[name] = c.State.Running.StartedAt
			}
		}
		for _, c := range p.Status.Conditions {
			if c.Type == api.PodReady {
				ready[name] = c.LastTransitionTime
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("containers after %d boots (-want +got):\n%s", boots, diff)
	}
	for name, others := range dependsOn {
		for _, other := range others {
			if starts[name].Before(ready[other]) { // in whole seconds
				s.Errorf("boot %d: %s was started at %v, and %s was ready at %v", boots, name, starts[name], other, ready[other])
			}
		}
	}
}
