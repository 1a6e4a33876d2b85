package engine

import (
	"context"
	"io"
	"log/slog"

	"github.com/containerd/log"
	"github.com/sirupsen/logrus"
)

// redirectLog sends containerd's log, which is logrus's standard logger, to l from level warning upwards. containerd logs every
// step at level info. Podstead reports those as events.
func redirectLog(l *slog.Logger) {
	logger := log.L.Logger
	logger.SetOutput(io.Discard)
	logger.SetFormatter(discardFormatter{})
	logger.SetLevel(logrus.WarnLevel)
	logger.ReplaceHooks(logrus.LevelHooks{})
	logger.AddHook(slogHook{l.With(slog.String("component", "containerd"))})
}

// discardFormatter formats nothing. The hook does the output.
type discardFormatter struct{}

// Format implements logrus.Formatter.
func (discardFormatter) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

// slogHook forwards log entries to slog.
type slogHook struct{ to *slog.Logger }

// Levels implements logrus.Hook.
func (slogHook) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel, logrus.WarnLevel}
}

// ignored are warnings that containerd logs in normal operation.
var ignored = map[string]bool{
	"copy shim log":                     true, // a shim exited
	"copy shim log after reload":        true,
	"failed check for fsverity support": true, // few file systems support it, and Podstead does not use it
}

// Fire implements logrus.Hook.
func (h slogHook) Fire(e *logrus.Entry) error {
	if ignored[e.Message] {
		return nil
	}
	level := slog.LevelError
	if e.Level == logrus.WarnLevel {
		level = slog.LevelWarn
	}
	attrs := make([]slog.Attr, 0, len(e.Data))
	for k, v := range e.Data {
		if err, ok := v.(error); ok {
			v = err.Error()
		}
		attrs = append(attrs, slog.Any(k, v))
	}
	ctx := e.Context
	if ctx == nil {
		ctx = context.Background() //nolint:forbidigo // a logrus entry may have no context, slog requires one
	}
	h.to.LogAttrs(ctx, level, e.Message, attrs...) //nolint:sloglint // the message is containerd's
	return nil
}
