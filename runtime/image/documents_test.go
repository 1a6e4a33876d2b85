package image

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestDocumentsAreBounded checks that only blobs may be larger than a document, also behind a redirect to another path.
func TestDocumentsAreBounded(t *testing.T) {
	body := bytes.Repeat([]byte("x"), maxDocument+1)
	mux := http.NewServeMux()
	mux.HandleFunc("/cdn/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	mux.HandleFunc("/v2/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/cdn/sha256/ab/abcd", http.StatusTemporaryRedirect)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: documents{Transport: transport, quotas: &quotas{}, access: &access{}}}
	for path, fits := range map[string]bool{"/v2/shop/blobs/sha256:abcd": true, "/v2/shop/manifests/1": false, "/cdn/token": false} {
		resp, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if (err == nil) != fits || fits && len(got) != len(body) {
			t.Errorf("%s: %d bytes, error %v", path, len(got), err)
		}
	}
}
