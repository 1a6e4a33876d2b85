package proc

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	const text = "12 (a ) b) Z 7 8 9 0 -1 4227084 0 0 0 0 0 0 0 0 20 0 1 0 123456 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 1 0 0 17 1" +
		" 0 0 0 0 0 0 0 0 0 0 0 0 1792"
	s, err := ParseStat([]byte(text))
	want := Stat{State: 'Z', Parent: 7, Group: 8, Session: 9, Start: 123456, Status: 1792}
	if err != nil || s != want {
		t.Errorf("got %+v, %v, want %+v", s, err, want)
	}
	for _, bad := range []string{"", "12 (a) Z 7", text[:len(text)-4] + "x", "12 (a"} {
		if _, err := ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestThisProcess reads the process of the test, and one that does not exist.
func TestThisProcess(t *testing.T) {
	self := os.Getpid()
	s, err := StatOf(self)
	if err != nil || s.Parent != os.Getppid() || s.Group != unix.Getpgrp() || !s.Running() {
		t.Errorf("this process: %+v, %v", s, err)
	}
	if got := Args(self); !slices.Equal(got, os.Args) {
		t.Errorf("arguments %q, want %q", got, os.Args)
	}
	if all, err := List(); err != nil || !slices.Contains(all, self) || slices.Contains(all, 0) {
		t.Errorf("processes %v, %v", all, err)
	}
	if _, err := StatOf(-1); err == nil {
		t.Error("a process has ID -1")
	}
	if got := Args(-1); len(got) != 1 || got[0] != "" {
		t.Errorf("arguments %q of no process", got)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a ) b) Z 7 8 9"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = ParseStat(text) })
}
