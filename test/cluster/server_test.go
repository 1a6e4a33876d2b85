//go:build soak

package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// programs is the directory of the programs that the script build makes.
const programs = "../../.cache/cluster/bin"

// token is the token of the administrator of an API server that listens on loopback, for the time of a test.
const token = "administrator"

// server is a running API server.
type server struct {
	url    string
	port   string
	client *http.Client
}

// startServer starts etcd and an API server in a directory of their own, on free ports of the loopback address. They end with the test.
func startServer(t *testing.T) *server {
	t.Helper()
	dir := t.TempDir()
	store, peers, port := freePort(t), freePort(t), freePort(t)
	storeURL, peersURL := "http://127.0.0.1:"+store, "http://127.0.0.1:"+peers
	start(t, dir, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", storeURL, "--advertise-client-urls", storeURL,
		"--listen-peer-urls", peersURL, "--initial-advertise-peer-urls", peersURL, "--initial-cluster", "default="+peersURL)
	key, tokens, certs := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "certs")
	writeKey(t, key)
	if err := os.WriteFile(tokens, []byte(token+`,admin,1,"system:masters"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir, "kube-apiserver", "--etcd-servers", storeURL, "--bind-address", "127.0.0.1", "--secure-port", port,
		"--advertise-address", "10.99.255.1", "--endpoint-reconciler-type", "none", "--cert-dir", certs, "--token-auth-file", tokens,
		"--authorization-mode", "RBAC", "--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range", "10.99.0.0/16",
		"--disable-admission-plugins", "ServiceAccount,Priority,TaintNodesByCondition", "--allow-privileged",
		"--feature-gates", "ContainerStopSignals=true")
	s := &server{url: "https://127.0.0.1:" + port, port: port}
	if err := s.await(t.Context(), filepath.Join(certs, "apiserver.crt")); err != nil {
		for _, name := range []string{"etcd", "kube-apiserver"} {
			text, _ := os.ReadFile(filepath.Join(dir, name+".log"))
			t.Logf("end of the output of %s:\n%s", name, text[max(0, len(text)-2000):])
		}
		t.Fatal(err)
	}
	return s
}

// start runs a program until the test ends. Its output is in the file NAME.log of the directory.
func start(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	output, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(filepath.Join(programs, name))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also if the test is killed
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run test/cluster/build .cache/cluster", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = output.Close()
	})
}

// freePort returns a port of the loopback address on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// writeKey writes a key for tokens of service accounts, which the API server requires.
func writeKey(t *testing.T, file string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
}

// await waits until the API server is ready and has the namespace default. It trusts the certificate that the server wrote.
func (s *server) await(ctx context.Context, certificate string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for last := error(nil); ; {
		if s.client == nil {
			if text, err := os.ReadFile(certificate); err == nil {
				pool := x509.NewCertPool()
				pool.AppendCertsFromPEM(text)
				s.client = &http.Client{Transport: &http.Transport{
					TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: workers,
				}}
			}
		} else if last = s.ready(ctx); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w", cmp.Or(last, ctx.Err()))
		case <-tick.C:
		}
	}
}

func (s *server) ready(ctx context.Context) error {
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
		code, text, err := s.request(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if code != http.StatusOK {
			return fmt.Errorf("%s: %d %s", path, code, text)
		}
	}
	return nil
}

func (s *server) request(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	return s.requestAs(ctx, method, path, "application/json", body)
}

// requestAs is request for a body of another type.
func (s *server) requestAs(ctx context.Context, method, path, contentType string, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", contentType)
	response, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// version returns the version of the API server.
func (s *server) version(t *testing.T) string {
	t.Helper()
	code, text, err := s.request(t.Context(), http.MethodGet, "/version", nil)
	if err != nil || code != http.StatusOK {
		t.Fatalf("get the version: %d %v", code, err)
	}
	var version struct{ GitVersion string }
	if err := json.Unmarshal(text, &version); err != nil {
		t.Fatal(err)
	}
	return version.GitVersion
}

// goField is the field in an error of the decoder of JSON.
var goField = regexp.MustCompile(`Go struct field \w+\.(\S+) of type`)

// judge has the API server create a pod, without an effect, and returns why it refuses the pod.
func (s *server) judge(ctx context.Context, pod object) ([]problem, error) {
	body, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	code, text, err := s.request(ctx, http.MethodPost, "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation=Strict", body)
	if err != nil || code < http.StatusMultipleChoices {
		return nil, err
	}
	var status struct {
		Message string
		Details struct {
			Causes []struct{ Field, Message string }
		}
	}
	overloaded := code == http.StatusTooManyRequests || code > http.StatusInternalServerError
	if err := json.Unmarshal(text, &status); err != nil || overloaded {
		return nil, fmt.Errorf("create %s: %d %s", body, code, text)
	}
	var problems []problem
	for _, cause := range status.Details.Causes {
		problems = append(problems, problem{field: general(cause.Field), message: cause.Message})
	}
	if len(problems) == 0 {
		p := problem{message: strings.TrimPrefix(status.Message, `Pod in version "v1" cannot be handled as a Pod: `)}
		if field := goField.FindStringSubmatch(p.message); field != nil {
			p.field = general(field[1])
		}
		problems = []problem{p}
	}
	return problems, nil
}
