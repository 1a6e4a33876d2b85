package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestAdmitClass tests the refusals of runtime classes: what a person does about each differs.
func TestAdmitClass(t *testing.T) {
	program := filepath.Join(t.TempDir(), "oci")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := &Runtime{}
	r.SetRuntimeClasses(map[string]string{"works": program, "lost": program + ".lost"})
	for class, want := range map[string]struct{ message, hint string }{
		"":      {},
		"works": {},
		"lost":  {`RuntimeClass "lost": OCI runtime not found: `, "install the OCI runtime of the class"},
		"none":  {`RuntimeClass "none" not found, this host has lost, works`, "define it as [[engine.runtimeClasses]]"},
	} {
		err := r.admitClass(class)
		if want.message == "" {
			if err != nil {
				t.Errorf("%q: %v", class, err)
			}
			continue
		}
		got, _ := errors.AsType[lifecycle.Refusal](err)
		if got.Reason != lifecycle.ReasonRuntimeClassUnavailable || got.Field != "runtimeClassName" ||
			!strings.HasPrefix(got.Message, want.message) || !strings.HasPrefix(got.Hint, want.hint) {
			t.Errorf("%q: %+v, want %+v", class, got, want)
		}
	}
}
