package runtime

import (
	"cmp"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/order"
)

const (
	// lossPause is the shortest time between two reports of what containers have lost, and maxLosses bounds the containers of one report.
	lossPause = 10 * time.Minute
	maxLosses = 20
	// maxWaitingLosses bounds the containers that wait for a report. What others lose is one loss.
	maxWaitingLosses = 200
)

// LogLoss is what was removed of the logs of a container since the last report. Without a name, it is that of all containers for which
// there was no room among those that wait for a report.
type LogLoss struct {
	Pod, UID, Container string
	Files               int
	Bytes, Limit        int64
}

// logLosses are those that were not reported yet.
type logLosses struct {
	byContainer map[string]*LogLoss // by <pod>_<UID>/<container>; "": of the others
	reported    time.Time
}

// add adds a removed file.
func (l *logLosses) add(pod, container string, size int64) {
	key := filepath.Join(pod, container)
	if l.byContainer == nil {
		l.byContainer = map[string]*LogLoss{}
	}
	loss := l.byContainer[key]
	if loss == nil && len(l.byContainer) >= maxWaitingLosses {
		if loss = l.byContainer[""]; loss == nil {
			loss = &LogLoss{}
			l.byContainer[""] = loss
		}
	}
	if loss == nil {
		i := max(strings.LastIndexByte(pod, '_'), 0)
		loss = &LogLoss{Pod: pod[:i], UID: strings.TrimPrefix(pod[i:], "_"), Container: container}
		l.byContainer[key] = loss
	}
	loss.Files++
	loss.Bytes += size
}

// report reports the largest losses, at most every 10 minutes. The others wait, as all do until report accepts them.
func (l *logLosses) report(limit int64, report func(LogLoss) bool) {
	if report == nil || len(l.byContainer) == 0 || time.Since(l.reported) < lossPause {
		return
	}
	keys := order.Sorted(maps.Keys(l.byContainer), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.byContainer[b].Bytes, l.byContainer[a].Bytes), strings.Compare(a, b))
	})
	for _, key := range keys[:min(len(keys), maxLosses)] {
		loss := *l.byContainer[key]
		loss.Limit = limit
		if !report(loss) {
			return
		}
		delete(l.byContainer, key)
	}
	l.reported = time.Now()
}
