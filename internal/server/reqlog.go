package server

import (
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// recorder notes the status of a response for the log.
type recorder struct {
	http.ResponseWriter

	status int
}

// WriteHeader notes the first final status.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap gives [http.ResponseController] the writer of the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// maxLogged is the maximum length of a path in the log and in an error, in bytes: that of a request can have [maxHeader].
const maxLogged = 256

// clipped shortens a text of a client.
func clipped(text string) string {
	if len(text) <= maxLogged {
		return text
	}
	return strings.ToValidUTF8(text[:maxLogged], "") + "..."
}

// logged logs each request with the process that sent it, when it has completed: changes at the level info, others at debug, as those of
// readers that are refused. A stream is logged when it ends.
func (s *Server) logged(routine bool, next http.HandlerFunc) http.HandlerFunc {
	level := slog.LevelInfo
	if routine {
		level = slog.LevelDebug
	}
	return func(w http.ResponseWriter, r *http.Request) {
		level := level
		if isReadOnly(r) { // it changes nothing, and its sender must not fill the log
			level = slog.LevelDebug
		}
		if !s.o.Log.Enabled(r.Context(), level) {
			next(w, r)
			return
		}
		record, start := &recorder{ResponseWriter: w}, time.Now()
		defer func() { //nolint:contextcheck // it has the context of the request; also of a stream that is interrupted by a panic
			if record.status == 0 {
				record.status = http.StatusOK
			}
			p, command := peerOf(r.Context()), "unknown"
			if agent := r.UserAgent(); agentPattern.MatchString(agent) {
				command = agent
			}
			s.o.Log.LogAttrs(r.Context(), level, "request", slog.Uint64("uid", uint64(p.uid)), slog.Int("pid", int(p.pid)),
				slog.String("command", command), slog.String("method", r.Method), slog.String("path", clipped(r.URL.Path)),
				slog.Int("status", record.status), slog.Duration("duration", time.Since(start)))
		}()
		next(record, r)
	}
}
