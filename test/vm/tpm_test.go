package vm

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestTPMExits: a TPM that does not exit after its virtual machine is killed, and reported.
func TestTPMExits(t *testing.T) {
	timeout := tpmTimeout
	defer func() { tpmTimeout = timeout }()
	for _, test := range []struct {
		script, want string
		timeout      time.Duration
	}{
		{"exit 0", "", timeout},
		{"exit 3", "TPM: exit status 3", timeout},
		{"exec sleep 1000", "TPM: signal: killed", time.Millisecond},
	} {
		cmd := exec.Command("sh", "-c", test.script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tpmTimeout = test.timeout
		got := ""
		if err := (&tpm{cmd: cmd}).wait(); err != nil {
			got = strings.TrimSpace(err.Error())
		}
		if got != test.want {
			t.Errorf("%s: error %q, want %q", test.script, got, test.want)
		}
	}
}
