package engine

import (
	"context"
	"io"
	"log/slog"

	"github.com/containerd/log"
	"github.com/sirupsen/logrus"
)

// redirectLog has containerd's log, which is logrus's standard one, go to l from warnings upwards. containerd reports
// each of its steps at level info; ours are told by events.
func redirectLog(l *slog.Logger) {
	logger := log.L.Logger
	logger.SetOutput(io.Discard)
	logger.SetFormatter(silent{})
	logger.SetLevel(logrus.WarnLevel)
	logger.ReplaceHooks(logrus.LevelHooks{})
	logger.AddHook(slogHook{l.With(slog.String("component", "containerd"))})
}

// silent formats nothing, since all is said in the hook.
type silent struct{}

// Format implements logrus.Formatter.
func (silent) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

// slogHook hands entries of logrus to slog.
type slogHook struct{ to *slog.Logger }

// Levels implements logrus.Hook.
func (slogHook) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel, logrus.WarnLevel}
}

// harmless is what containerd warns of in the normal course of things.
var harmless = map[string]bool{
	"copy shim log":                     true, // a shim has ended
	"copy shim log after reload":        true,
	"failed check for fsverity support": true, // few file systems have it, and we do not use it
}

// Fire implements logrus.Hook.
func (h slogHook) Fire(e *logrus.Entry) error {
	if harmless[e.Message] {
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
		ctx = context.Background() //nolint:forbidigo // logrus has none, and slog wants one
	}
	h.to.LogAttrs(ctx, level, e.Message, attrs...) //nolint:sloglint // the message is containerd's
	return nil
}
