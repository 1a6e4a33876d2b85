//go:build e2e

package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// prometheusAddress is where a Prometheus of a script serves its API. Tests have a network namespace of their own.
const prometheusAddress = "127.0.0.1:9090"

func init() {
	imageCommands["prometheus"] = startPrometheus
	imageCommands["certificates"] = func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(os.MkdirAll(ts.MkAbs(args[0]), 0o755))
		writeCertificates(ts, ts.MkAbs(args[0]))
	}
}

// startPrometheus is the command `prometheus CONFIG`: it starts Debian's prometheus, and adds its programs to $PATH.
func startPrometheus(ts *testscript.TestScript, _ bool, args []string) {
	bin := filepath.Join(ts.Getenv("REPO"), ".cache/debian/usr/bin")
	if program, err := exec.LookPath("prometheus"); err == nil {
		bin = filepath.Dir(program)
	}
	ts.Setenv("PATH", ts.Getenv("PATH")+":"+bin)
	cmd := exec.Command(filepath.Join(bin, "prometheus"), "--config.file="+ts.MkAbs(args[0]), "--storage.tsdb.path="+ts.MkAbs("tsdb"),
		"--web.listen-address="+prometheusAddress, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	if err := cmd.Start(); err != nil {
		ts.Fatalf("start prometheus: %v (run .ci/deps test)", err)
	}
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; {
		if r, err := http.Get((&url.URL{Scheme: "http", Host: prometheusAddress, Path: "/-/ready"}).String()); err == nil {
			_, err = io.Copy(io.Discard, r.Body)
			ts.Check(err)
			ts.Check(r.Body.Close())
			if r.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			ts.Fatalf("prometheus is not ready")
		}
	}
}
