package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// TestStreamEndsCompletelyAfterSilence checks the end of a stream that was silent for longer than the timeout of a write: clients must
// not take it for a lost connection.
func TestStreamEndsCompletelyAfterSilence(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out := newStream(w)
		err := out.send(api.Line{Line: "the last line"})
		if err == nil {
			err = out.flush()
		}
		if err == nil {
			err = out.control.SetWriteDeadline(time.Now().Add(-time.Second)) // the silence
		}
		out.done(err)
	}))
	defer server.Close()
	r, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil {
		t.Errorf("read stream: %v, after %q", err, text)
	}
}
