package logbound

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// lossPause is the shortest time between two reports of what containers have lost, and maxLosses bounds the containers of one report.
	lossPause = 10 * time.Minute
	maxLosses = 20
	// maxWaiting bounds the containers that wait for a report. What others lose is one loss.
	maxWaiting = 200
)

// Loss is what was removed of the logs of a container since the last report. Without a name, it is that of all containers for which there
// was no room among those that wait for a report.
type Loss struct {
	Pod, UID, Container string
	Files               int
	Bytes, Limit        int64
}

// losses are those that were not reported yet.
type losses struct {
	byContainer map[string]*Loss // by <pod>_<UID>/<container>; "": of the others
	reported    time.Time
}

// add adds a removed file.
func (l *losses) add(pod, container string, size int64) {
	key := filepath.Join(pod, container)
	if l.byContainer == nil {
		l.byContainer = map[string]*Loss{}
	}
	loss := l.byContainer[key]
	if loss == nil && len(l.byContainer) >= maxWaiting {
		if loss = l.byContainer[""]; loss == nil {
			loss = &Loss{}
			l.byContainer[""] = loss
		}
	}
	if loss == nil {
		i := max(strings.LastIndexByte(pod, '_'), 0)
		loss = &Loss{Pod: pod[:i], UID: strings.TrimPrefix(pod[i:], "_"), Container: container}
		l.byContainer[key] = loss
	}
	loss.Files++
	loss.Bytes += size
}

// report reports the largest losses, at most every 10 minutes. The others wait, as all do until report accepts them.
func (l *losses) report(limit int64, report func(Loss) bool) {
	if report == nil || len(l.byContainer) == 0 || time.Since(l.reported) < lossPause {
		return
	}
	keys := make([]string, 0, len(l.byContainer))
	for key := range l.byContainer {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
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
