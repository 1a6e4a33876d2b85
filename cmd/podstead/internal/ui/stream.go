package ui

import (
	"net/http"
	"time"
)

// stream is a response of JSON values, one in each line.
type stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "application/x-ndjson")
	return &stream{w, http.NewResponseController(w)}
}

// send sends a value, with escaped hidden characters. It blocks while the browser does not read, up to [writeTimeout].
func (s *stream) send(v any) error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	text, err := escaped(v)
	if err != nil {
		return err
	}
	if _, err := s.w.Write(append(text, '\n')); err != nil {
		return err
	}
	return s.controller.Flush()
}
