package vm

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExecute: a command is sent after the handshake. Events are not its response, and its error is that of QEMU.
func TestExecute(t *testing.T) {
	for _, test := range []struct{ name, response, want string }{
		{"success", `{"event": "DEVICE_DELETED"}{"return": {}}`, ""},
		{"error", `{"error": {"class": "GenericError", "desc": "Bus 'scsi.0' not found"}}`, "device_add: Bus 'scsi.0' not found"},
		{"end", ``, "device_add: EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &Machine{dir: t.TempDir()}
			listener, err := net.Listen("unix", filepath.Join(m.dir, qmpSocket))
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			requests := make(chan []string, 1)
			go func() {
				var lines []string
				defer func() { requests <- lines }()
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				reader := bufio.NewReader(conn)
				for _, answer := range []string{`{"QMP": {}}`, `{"return": {}}`, test.response} {
					if answer != `{"QMP": {}}` {
						line, _ := reader.ReadString('\n')
						lines = append(lines, strings.TrimSpace(line))
					}
					_, _ = fmt.Fprintln(conn, answer)
				}
			}()
			got := ""
			if err := m.Execute(t.Context(), "device_add", Arguments{"nr": 5}); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("error %q, want %q", got, test.want)
			}
			want := []string{`{"execute":"qmp_capabilities"}`, `{"execute":"device_add","arguments":{"nr":5}}`}
			if diff := cmp.Diff(want, <-requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
