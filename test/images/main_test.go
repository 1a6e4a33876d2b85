package main

import (
	"debug/elf"
	"os"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/ocitar"
)

func TestDynamicProgramIsRejected(t *testing.T) {
	const sh = "/bin/sh"
	f, err := elf.Open(sh)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Section(".interp") == nil {
		t.Fatalf("%s is static, want a dynamic program", sh)
	}
	_, err = busyboxImage(sh)
	if err == nil || !strings.Contains(err.Error(), "busybox-static") {
		t.Errorf("image of a dynamic program: %v, want a hint at busybox-static", err)
	}
}

func TestMissingBusyboxNamesThePackage(t *testing.T) {
	_, err := busyboxImage("no-such-program")
	if err == nil || !strings.Contains(err.Error(), "busybox-static") {
		t.Errorf("image without busybox: %v, want a hint at busybox-static", err)
	}
}

func TestOutputDirectoryIsAFile(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := save(file+"/x.tar", ocitar.Image{}, ocitar.WriteOCI); err == nil {
		t.Error("no error for an archive below a file")
	}
}
