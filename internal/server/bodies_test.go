package server

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
)

// TestBodiesAreBounded sends many large requests at once and expects that the sum of the bodies that are held is bounded, that all requests
// are answered, and that a request without a body does not wait.
func TestBodiesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Options{})
		var mu sync.Mutex
		held, answered := 0, 0
		release := make(chan struct{})
		handler := s.handle(func(r *http.Request) (any, error) {
			mu.Lock()
			held += int(r.ContentLength)
			mu.Unlock()
			<-release
			mu.Lock()
			held -= int(r.ContentLength)
			answered++
			mu.Unlock()
			return struct{}{}, nil
		})
		body := make([]byte, maxBody-1)
		const requests = 30
		for range requests {
			go handler(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body)))
		}
		synctest.Wait()
		s.handle(func(*http.Request) (any, error) { return struct{}{}, nil })(
			httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)) // does not wait
		for range requests {
			synctest.Wait()
			mu.Lock()
			if held == 0 || held > maxBodies {
				t.Errorf("bodies of %d bytes are held at once, want at most %d", held, maxBodies)
			}
			mu.Unlock()
			release <- struct{}{}
		}
		synctest.Wait()
		if answered != requests {
			t.Errorf("%d requests were answered, want %d", answered, requests)
		}
	})
}
