package sandbox

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckPause checks that a program that needs a dynamic linker is not used as the process of a sandbox, which has none.
func TestCheckPause(t *testing.T) {
	const headerSize, programSize = 64, 56
	program := func(kind elf.ProgType) []byte {
		h := elf.Header64{
			Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
			Phoff: headerSize, Ehsize: headerSize, Phentsize: programSize, Phnum: 1,
		}
		copy(h.Ident[:], elf.ELFMAG)
		h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
		h.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
		var b bytes.Buffer
		for _, part := range []any{h, elf.Prog64{Type: uint32(kind)}} {
			if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
				t.Fatal(err)
			}
		}
		return b.Bytes()
	}
	for _, test := range []struct {
		name string
		text []byte
		want string // a part of the error; empty: none
	}{
		{"static", program(elf.PT_LOAD), ""},
		{"dynamic", program(elf.PT_INTERP), "is dynamically linked: build podstead with CGO_ENABLED=0"},
		{"script", []byte("#!/bin/sh\nexec sleep 1000000\n"), "bad magic number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shim")
			if err := os.WriteFile(path, test.text, 0o755); err != nil {
				t.Fatal(err)
			}
			err := CheckStatic(path)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	if err := CheckStatic(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v for a program that does not exist", err)
	}
}
