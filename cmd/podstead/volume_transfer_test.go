package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/filecopy"
)

// volumeFiles are the files of persistent volumes.
type volumeFiles struct {
	imported string
	hangs    chan struct{} // closed when an import has read its archive and hangs; nil: it does not
}

func (*volumeFiles) ExportVolume(_ context.Context, name string, w io.Writer) (filecopy.Result, error) {
	if name == "none" {
		return filecopy.Result{}, fs.ErrNotExist
	}
	_, err := io.WriteString(w, "archive of "+name+"\n")
	return filecopy.Result{Warnings: []string{`"fifo" left out`}}, err
}

func (f *volumeFiles) ImportVolume(ctx context.Context, name string, r io.Reader, _ bool, free func() error) (filecopy.Result, error) {
	if err := free(); err != nil {
		return filecopy.Result{}, err
	}
	text, err := io.ReadAll(r)
	f.imported = name + ": " + string(text)
	if f.hangs != nil {
		close(f.hangs)
		<-ctx.Done()
		return filecopy.Result{}, ctx.Err()
	}
	return filecopy.Result{Files: 3, Bytes: 2048}, err
}

// TestVolumeTransfer exports a volume to a file and to standard output, and imports it. It says what a running pod means.
func TestVolumeTransfer(t *testing.T) {
	h := newTestHost(t, api.Version{})
	fake := &volumeFiles{}
	h.closeServer()
	h.options.VolumeFiles = fake
	h.serve(t)
	h.write(t, "db.toml", script("volumes = [{ name = \"data\", persistentVolumeClaim = { claimName = \"pgdata\" } }]", runs))
	h.want(t, "apply $DIR/db.toml --wait", "pod/db created\n")
	got := h.want(t, "volume export pgdata", "archive of pgdata\n")
	if !strings.Contains(got.stderr, `podstead: warning: pod "db" is running: files that change during the export may be inconsistent`) ||
		!strings.Contains(got.stderr, `podstead: warning: "fifo" left out`) {
		t.Errorf("stderr %q", got.stderr)
	}
	const missing = `podstead: import volume "pgdata" from "$DIR/pgdata.tar": no such file or directory`
	h.fails(t, "volume import pgdata $DIR/pgdata.tar", statusUsage, missing)
	h.want(t, "volume export pgdata -o $DIR/pgdata.tar", "")
	info, err := os.Stat(filepath.Join(h.dir, "pgdata.tar"))
	if err != nil || info.Mode() != 0o600 || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
	got = h.fails(t, "volume import pgdata $DIR/pgdata.tar", statusFailed, `volume "pgdata" is in use by pod "db", which is running`)
	if !strings.Contains(got.stderr, "hint: stop it with podstead stop db") {
		t.Errorf("stderr %q", got.stderr)
	}
	h.want(t, "stop db", "pod/db stopped\n")
	if got := h.want(t, "volume export pgdata", "archive of pgdata\n"); strings.Contains(got.stderr, "running") {
		t.Errorf("a pod that is stopped: stderr %q", got.stderr)
	}
	h.want(t, "volume import pgdata $DIR/pgdata.tar --replace", "volume/pgdata imported (3 files, 2Ki)\n")
	if fake.imported != "pgdata: archive of pgdata\n" {
		t.Errorf("imported %q", fake.imported)
	}
	h.fails(t, "volume export none", statusNotFound, `podstead: volume "none" not found`)
	h.fails(t, "volume export", statusUsage, "volume export requires a volume")
	h.fails(t, "volume export a b", statusUsage, "volume export accepts one volume")
	h.fails(t, "volume import pgdata", statusUsage, "volume import requires a volume and a file")
	const noDirectory = `podstead: export volume "pgdata" to "$DIR/none/x": no such file or directory`
	h.fails(t, "volume export pgdata -o $DIR/none/x", statusFailed, noDirectory)
}

// TestInterruptedImport: an import that is interrupted after the daemon has read the archive may be complete.
func TestInterruptedImport(t *testing.T) {
	h := newTestHost(t, api.Version{})
	fake := &volumeFiles{hangs: make(chan struct{})}
	h.closeServer()
	h.options.VolumeFiles = fake
	h.serve(t)
	h.write(t, "data.tar", "archive")
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		<-fake.hangs
		interrupt()
	}()
	var stderr bytes.Buffer
	a := &app{in: strings.NewReader(""), out: io.Discard, err: &stderr}
	code := a.run(ctx, h.argumentsOf("volume import data $DIR/data.tar"))
	if want := "podstead: import: interrupted, the volume may have been replaced\n"; code == 0 || stderr.String() != want {
		t.Errorf("exit code %d, stderr %q, want %q", code, stderr.String(), want)
	}
}
