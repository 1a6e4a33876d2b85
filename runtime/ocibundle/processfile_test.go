package ocibundle

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompleteProcess expects the arguments and the environment of the file, and that everything else in the specification is unchanged,
// also fields that this version does not know.
func TestCompleteProcess(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "process")
	with := `"annotations": {"podstead.io/process": "` + file + `", "a": "b"}`
	tests := []struct{ name, kept, spec, want, err string }{
		{
			name: "arguments and environment", kept: `{"args": ["sh", "<"], "env": ["A=secret"]}`,
			spec: `{"later": 18446744073709551615, "process": {"args": ["x"], "cwd": "/", "new": [1]}, ` + with + `}`,
			want: `{"later": 18446744073709551615, "process": {"args": ["sh", "<"], "env": ["A=secret"], "cwd": "/", "new": [1]}, ` +
				with + `}`,
		},
		{
			name: "no environment", kept: `{"args": ["sh"]}`,
			spec: `{"process": {"args": ["x"], "env": ["A=b"]}, ` + with + `}`,
			want: `{"process": {"args": ["sh"]}, ` + with + `}`,
		},
		{name: "no annotation", spec: `{"process": {"args": ["x"]}}`, want: `{"process": {"args": ["x"]}}`},
		{name: "no process", spec: `{` + with + `}`, want: `{` + with + `}`},
		{
			name: "no file", spec: `{"process": {}, ` + with + `}`,
			err: "read process of container: open " + file + ": no such file or directory",
		},
		{
			name: "bad file", kept: `[]`, spec: `{"process": {}, ` + with + `}`,
			err: "read process of container: json: cannot unmarshal array into Go value of type map[string]json.RawMessage",
		},
		{
			name: "bad specification", spec: `{"annotations": ["podstead.io/process"]}`,
			err: "read annotations of specification: json: cannot unmarshal array into Go value of type map[string]string",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bundle := t.TempDir()
			config := filepath.Join(bundle, "config.json")
			_ = os.Remove(file)
			if tt.kept != "" {
				write(t, file, tt.kept)
			}
			write(t, config, tt.spec)
			err := completeProcess(bundle)
			if got := errorText(err); got != tt.err {
				t.Fatalf("error %q, want %q", got, tt.err)
			}
			if err != nil {
				return
			}
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, tt.want), decoded(t, string(text))); diff != "" {
				t.Errorf("specification (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnPIDs(t *testing.T) {
	tests := []struct {
		spec string
		want bool
	}{
		{`{"linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}]}}`, true},
		{`{"linux": {"namespaces": [{"type": "pid", "path": "/proc/1/ns/pid"}]}}`, false},
		{`{"linux": {"namespaces": [{"type": "mount"}]}}`, false},
		{`{}`, false},
		{`not JSON`, false},
		{"", false}, // no file
	}
	for _, tt := range tests {
		bundle := t.TempDir()
		if tt.spec != "" {
			write(t, filepath.Join(bundle, "config.json"), tt.spec)
		}
		if got := OwnPIDs(bundle); got != tt.want {
			t.Errorf("%s: got %v", tt.spec, got)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// decoded decodes a JSON object. Numbers keep their digits.
func decoded(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		var any any
		if name == "later" {
			continue
		}
		if err := json.Unmarshal(value, &any); err != nil {
			t.Fatal(err)
		}
		sorted, err := json.Marshal(any)
		if err != nil {
			t.Fatal(err)
		}
		fields[name] = sorted
	}
	return fields
}
