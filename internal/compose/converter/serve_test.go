package converter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/compose"
)

// TestServeVersion rejects requests of another version before the process limits itself, which would affect other tests.
func TestServeVersion(t *testing.T) {
	request, err := json.Marshal(compose.Request{Version: "v2", Files: []string{"/compose.yaml"}, Names: []string{"compose.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, want string }{
		{string(request), "podstead and podstead-compose are not of the same version: v2 and v1"},
		{`{"Version": "v1"}`, "no files"},
		{`{"Version": "v2", "Files": 1}`, "podstead and podstead-compose are not of the same version: v2 and v1"},
		{`{"Version": "v1", "Files": 1}`, "cannot unmarshal"},
		{`{"Version"`, "unexpected end"},
	} {
		var out bytes.Buffer
		err := Serve(t.Context(), "v1", strings.NewReader(c.in), &out)
		if err == nil || !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
			t.Errorf("%s: %v, output %q", c.in, err, out.String())
		}
	}
}
