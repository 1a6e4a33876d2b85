//go:build e2e && amd64

package runtime_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/verdict"
)

const programsOfPod = `
[[volumes]]
name = "host"
hostPath.path = "@host"

[[containers]]
name = "own"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "exec 2>&1; @write; /program; echo code $?"]

[[containers]]
name = "volume"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "/host/program; echo code $?"]
volumeMounts = [{ name = "host", mountPath = "/host" }]

[[containers]]
name = "unconfined"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@write; /program; echo code $?"]
securityContext.seccompProfile = { type = "Unconfined" }
`

// TestProgramsFor32Bit tests that a container whose image has none cannot run 32-bit programs that it writes itself, and that it can run
// those of volumes, which may have been intended.
func TestProgramsFor32Bit(t *testing.T) {
	m := newTestHost(t)
	const code = 42
	program := verdict.Program32(code)
	m.write("host/program", string(program), 0o755)
	if err := os.Chmod(m.dir+"/host/program", 0o755); err != nil {
		t.Fatal(err)
	}
	var octal strings.Builder
	for _, b := range program {
		fmt.Fprintf(&octal, `\\%03o`, b)
	}
	write := `printf '` + octal.String() + `' > /program; chmod 755 /program`
	p := newPod(m, m.parse(strings.NewReplacer("@host", m.dir+"/host", "@write", write).Replace(programsOfPod)))
	wantLines(t, p.run("unconfined"), "code 42") // also: the kernel runs 32-bit programs
	wantLines(t, p.run("volume"), "code 42")
	wantLines(t, p.run("own"), "Bad system call", "code 159") // SIGSYS
}
