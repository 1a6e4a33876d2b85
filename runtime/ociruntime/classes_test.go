package ociruntime

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestClasses(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	programs(t, map[string]string{
		"crun": "echo x >>" + asked + "; echo 'crun version 1.8'", "runc": `echo '{"mountOptions": ["rro"]}'`,
	})
	var c Classes
	if err := c.Check("fast"); !errors.Is(err, ErrNoClass) || err.Error() != `RuntimeClass "fast" not found, this host has none` {
		t.Errorf("no classes: %v", err)
	}
	c.Set(map[string]string{"fast": "crun", "plain": "runc", "lost": "/no/such/runtime"})
	if _, err := c.Select(t.Context(), "x"); !errors.Is(err, ErrNoClass) ||
		err.Error() != `RuntimeClass "x" not found, this host has fast, lost, plain` {
		t.Errorf("unknown class: %v", err)
	}
	if _, err := c.Select(t.Context(), "lost"); !errors.Is(err, ErrNotFound) {
		t.Errorf("missing program: %v", err)
	}
	if err := c.Check("fast"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("a check has run the OCI runtime")
	}
	got, err := c.Select(t.Context(), "fast")
	if err != nil || got.Program != "crun" || got.UserNamespaces != "runc" || got.Reason != "" {
		t.Errorf("%+v, %v; want crun, and runc for user namespaces", got, err)
	}
	if got, err := c.Select(t.Context(), "plain"); err != nil || got.Program != "runc" || got.UserNamespaces != "runc" {
		t.Errorf("%+v, %v; want runc", got, err)
	}
	before, err := os.ReadFile(asked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Select(t.Context(), "fast"); err != nil {
		t.Error(err)
	}
	c.RecursiveReadOnly(t.Context(), "crun")
	if after, err := os.ReadFile(asked); err != nil || string(after) != string(before) {
		t.Errorf("the OCI runtime was called again: %q, then %q, %v", before, after, err)
	}
	if c.RecursiveReadOnly(t.Context(), "/no/such/runtime") {
		t.Error("a program that does not exist supports recursive mounts")
	}
	c.Set(nil)
	if err := c.Check("fast"); !errors.Is(err, ErrNoClass) {
		t.Errorf("removed class: %v", err)
	}
}
