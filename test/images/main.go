// Command images writes the container images of Podstead's examples and test suites as archives. It builds them from programs of the
// host and this repository, without a registry. The same programs give the same bytes.
//
//	go run ./test/images -o DIR
//
// writes to DIR
//
//	busybox.tar         localhost/podstead/busybox:1, an OCI layout
//	busybox-docker.tar  the same in the format of docker save
//	busybox-new.tar     localhost/podstead/busybox:1, built again with another label
//	testserver.tar      localhost/podstead/testserver:1, an OCI layout
//	actor.tar           localhost/podstead/actor:1, an OCI layout
//	intruder.tar        localhost/podstead/intruder:1, an OCI layout
package main

import (
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/test/ocitar"
)

func main() {
	dir := flag.String("o", ".", "write the archives to this `directory`, created if missing")
	busybox := flag.String("busybox", "busybox", "static busybox `program` (Debian: busybox-static)")
	flag.Parse()
	if err := run(*dir, *busybox); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(dir, busybox string) error {
	bb, err := busyboxImage(busybox)
	if err != nil {
		return err
	}
	ts, err := testserverImage()
	if err != nil {
		return err
	}
	actor, err := actorImage()
	if err != nil {
		return err
	}
	intruder, err := intruderImage(bb)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	newer := bb
	newer.Config.Labels = map[string]string{"org.opencontainers.image.version": "2"}
	return errors.Join(
		save(filepath.Join(dir, "busybox.tar"), bb, ocitar.WriteOCI),
		save(filepath.Join(dir, "busybox-docker.tar"), bb, ocitar.WriteDocker),
		save(filepath.Join(dir, "busybox-new.tar"), newer, ocitar.WriteOCI),
		save(filepath.Join(dir, "testserver.tar"), ts, ocitar.WriteOCI),
		save(filepath.Join(dir, "actor.tar"), actor, ocitar.WriteOCI),
		save(filepath.Join(dir, "intruder.tar"), intruder, ocitar.WriteOCI),
	)
}

// save replaces the file atomically.
func save(name string, img ocitar.Image, write func(io.Writer, ...ocitar.Image) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".image-*")
	if err != nil {
		return err
	}
	err = errors.Join(write(f, img), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(f.Name()))
	}
	return nil
}

// busyboxImage returns an image with busybox and a link for each of its commands. Its configuration is minimal, as in public base
// images.
func busyboxImage(name string) (ocitar.Image, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		return ocitar.Image{}, fmt.Errorf("find busybox: %w (Debian: apt-get install busybox-static)", err)
	}
	if err := static(program); err != nil {
		return ocitar.Image{}, err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return ocitar.Image{}, err
	}
	list, err := exec.Command(program, "--list").Output()
	if err != nil {
		return ocitar.Image{}, fmt.Errorf("list the commands of %s: %w", program, err)
	}
	applets := strings.Fields(string(list))
	slices.Sort(applets)

	layer := append(root(), ocitar.File{Path: "bin/busybox", Mode: 0o755, Data: data})
	for _, a := range applets {
		if a != "busybox" {
			layer = append(layer, ocitar.File{Path: "bin/" + a, Link: "busybox"})
		}
	}
	return ocitar.Image{
		Name:   "localhost/podstead/busybox:1",
		Config: ocispec.ImageConfig{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}},
		Layers: []ocitar.Layer{layer},
	}, nil
}

// testserverImage sets every field of an image configuration, so that tests see each one used or overridden.
func testserverImage() (ocitar.Image, error) {
	program, err := buildProgram("testserver")
	if err != nil {
		return ocitar.Image{}, err
	}
	return ocitar.Image{
		Name: "localhost/podstead/testserver:1",
		Config: ocispec.ImageConfig{
			User:         "nobody",
			Env:          []string{"PATH=/bin", "GREETING=from the image"},
			Entrypoint:   []string{"/bin/testserver"},
			Cmd:          []string{"-dir", "/srv"},
			WorkingDir:   "/srv",
			StopSignal:   "SIGINT",
			ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		},
		Layers: []ocitar.Layer{
			append(root(), ocitar.File{Path: "srv", Mode: fs.ModeDir | 0o755}),
			{{Path: "bin/testserver", Mode: 0o755, Data: program}},
		},
	}, nil
}

// actorImage has only the program of the conformance tests, because it is started very often.
func actorImage() (ocitar.Image, error) {
	program, err := buildProgram("actor")
	if err != nil {
		return ocitar.Image{}, err
	}
	return ocitar.Image{
		Name:   "localhost/podstead/actor:1",
		Config: ocispec.ImageConfig{Env: []string{"PATH=/bin", "GOMAXPROCS=1"}, Entrypoint: []string{"/bin/actor"}},
		Layers: []ocitar.Layer{append(root(), ocitar.File{Path: "bin/actor", Mode: 0o755, Data: program})},
	}, nil
}

// intruderImage is busybox with the hostile program, and with a script for /proc/self/exe, which makes the OCI runtime execute itself
// (CVE-2019-5736).
func intruderImage(busybox ocitar.Image) (ocitar.Image, error) {
	program, err := buildProgram("intruder")
	if err != nil {
		return ocitar.Image{}, err
	}
	return ocitar.Image{
		Name:   "localhost/podstead/intruder:1",
		Config: ocispec.ImageConfig{Env: []string{"PATH=/bin"}, Entrypoint: []string{"/bin/intruder"}},
		Layers: append(busybox.Layers, ocitar.Layer{
			{Path: "bin/intruder", Mode: 0o755, Data: program},
			{Path: "bin/runtime", Mode: 0o755, Data: []byte("#!/proc/self/exe\n")},
		}),
	}, nil
}

// buildProgram builds the program in a directory beside this file.
func buildProgram(name string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, name)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", out, // fixed names
		"github.com/podstead/podstead/test/images/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux") // flags are in the program
	if msg, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", name, err, msg)
	}
	return os.ReadFile(out)
}

// root returns the directories and files that programs expect in a root file system. /proc, /sys and /dev are mount points for the
// runtime.
func root() ocitar.Layer {
	var l ocitar.Layer
	for _, dir := range []string{"bin", "dev", "etc", "home", "proc", "root", "sys", "var"} {
		l = append(l, ocitar.File{Path: dir, Mode: fs.ModeDir | 0o755})
	}
	return append(l,
		ocitar.File{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		ocitar.File{Path: "etc/passwd", Mode: 0o644, Data: []byte(
			"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n")},
		ocitar.File{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnogroup:x:65534:\n")},
	)
}

// static fails for a program that needs a dynamic loader. The image has none, and its containers would fail with a confusing "no such
// file or directory".
func static(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("read %s: %w", program, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is dynamically linked (Debian: apt-get install busybox-static)", program)
		}
	}
	return nil
}
