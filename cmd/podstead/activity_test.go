package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func columns(n int) func() int { return func() int { return n } }

// TestActivity checks what a terminal shows while a command waits and prints.
func TestActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := startActivity(&b, columns(30), "Waiting until \x1bweb is stopped")
		out := l.Writer(&b)
		time.Sleep(2500 * time.Millisecond) // virtual time
		synctest.Wait()
		for _, line := range []string{"pod/a stopped\n", "pod/b stopped\n"} {
			if _, err := out.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		l.Stop()
		want := "\r\x1b[K" + `Waiting until \x1bweb is stop` + "\r\x1b[K" + `Waiting until \x1bweb is stop` +
			"\r\x1b[Kpod/a stopped\npod/b stopped\n" + "\r\x1b[K" + `Waiting until \x1bweb is stop` + "\r\x1b[K"
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestShortActivity checks that a wait of less than a second shows nothing, and that the time is shown.
func TestShortActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := startActivity(&b, columns(80), "Waiting")
		time.Sleep(900 * time.Millisecond) // virtual time
		l.Stop()
		if b.String() != "" {
			t.Errorf("%q, want nothing", b.String())
		}
		l = startActivity(&b, columns(80), "Waiting")
		time.Sleep(61500 * time.Millisecond)
		l.Stop()
		if want := "Waiting (1m1s)\r\x1b[K"; !strings.HasSuffix(b.String(), want) {
			t.Errorf("%q, want the end %q", b.String(), want)
		}
	})
}
