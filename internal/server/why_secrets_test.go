package server_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
)

// slowSecrets answers when a number of secrets are being read.
type slowSecrets struct {
	mu      sync.Mutex
	missing int
	all     chan struct{} // closed when none is missing
	end     <-chan struct{}
}

func (s *slowSecrets) Secret(*spec.Pod, string) (map[string][]byte, error) {
	s.mu.Lock()
	if s.missing--; s.missing == 0 {
		close(s.all)
	}
	s.mu.Unlock()
	select {
	case <-s.all:
		return map[string][]byte{"key": []byte("planted-value")}, nil
	case <-s.end:
		return nil, errors.New("the secrets were read one after the other")
	}
}

// TestWhyReadsSecretsSideBySide: secrets on a slow file system delay an explanation once, not once per secret or pod.
func TestWhyReadsSecretsSideBySide(t *testing.T) {
	t.Parallel()
	const pods = 3
	d := newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	d.secrets = &slowSecrets{missing: 2 * pods, all: make(chan struct{}), end: t.Context().Done()}
	d.serve(t, "second")
	for i := range pods {
		uid := d.create(t, file(fmt.Sprintf("p%d", i), `restartPolicy = "Never"
[[containers]]
name = "main"
image = "i"
command = ["sh", "-c", "echo planted-value; exit 3"]
env.A.secretKeyRef = { name = "a", key = "key" }
env.B.secretKeyRef = { name = "b", key = "key" }
`)).Metadata.UID
		d.await(t, uid, "pod at rest", atRest)
	}
	list, err := d.client.WhyAll(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		e := &list.Items[i]
		if e.Pod != fmt.Sprintf("p%d", i) || e.Containers[0].Evidence == nil || len(e.Containers[0].Evidence.Log) != 1 ||
			e.Containers[0].Evidence.Log[0] != "[redacted]" {
			t.Errorf("%+v", e.Containers)
		}
	}
	if len(list.Items) != pods {
		t.Errorf("%d pods", len(list.Items))
	}
}

// countedSecrets counts the secrets that are being read, each until it receives from release.
type countedSecrets struct {
	mu            sync.Mutex
	reading, most int
	full          chan struct{} // closed when limit are being read for the first time
	limit         int
	release       chan struct{}
}

func (s *countedSecrets) Secret(*spec.Pod, string) (map[string][]byte, error) {
	s.mu.Lock()
	s.reading++
	if s.reading > s.most {
		if s.most = s.reading; s.most == s.limit {
			close(s.full)
		}
	}
	s.mu.Unlock()
	<-s.release
	s.mu.Lock()
	s.reading--
	s.mu.Unlock()
	return map[string][]byte{"key": []byte("planted-value")}, nil
}

// TestWhyLimitsSecretReads explains several pods with more secrets than are read at the same time.
func TestWhyLimitsSecretReads(t *testing.T) {
	t.Parallel()
	const limit, pods, perPod = 32, 3, 30
	secrets := &countedSecrets{limit: limit, full: make(chan struct{}), release: make(chan struct{})}
	d := newTestDaemon(t, fakeruntime.Options{})
	d.closeServer()
	d.secrets = secrets
	d.serve(t, "second")
	for i := range pods {
		text := "[[containers]]\nname = \"main\"\nimage = \"i\"\ncommand = [\"sleep\", \"1000\"]\n"
		for n := range perPod {
			text += fmt.Sprintf("env.E%d.secretKeyRef = { name = \"s%d\", key = \"key\" }\n", n, n)
		}
		d.create(t, file(fmt.Sprintf("p%d", i), text))
	}
	var requests sync.WaitGroup
	for range 2 { // the limit is that of all requests
		requests.Go(func() {
			if list, err := d.client.WhyAll(t.Context(), 1); err != nil || len(list.Items) != pods {
				t.Errorf("%d pods, %v", len(list.Items), err)
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		requests.Wait()
		close(ended)
	}()
	select {
	case <-secrets.full:
	case <-ended:
	}
	for release := secrets.release; release != nil; { // one after the other, so that further reads could begin
		runtime.Gosched()
		select {
		case release <- struct{}{}:
		case <-ended: // at the latest at their timeout, when not all secrets have been read
			release = nil
		}
	}
	close(secrets.release) // for reads that no request waits for
	secrets.mu.Lock()
	defer secrets.mu.Unlock()
	if secrets.most != limit {
		t.Errorf("%d secrets were read at the same time, want at most %d", secrets.most, limit)
	}
}
