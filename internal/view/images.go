package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/supervisor/explain"
)

// ImageTable returns the rows of images, with a header unless it is omitted.
func ImageTable(list []api.Image, o TableOptions, now time.Time) [][]string {
	var rows [][]string
	if !o.NoHeader {
		header := []string{"NAME", "DIGEST", "PLATFORM", "SIZE", "AGE", "USED BY", "KEPT"}
		if o.Wide {
			header = []string{"NAME", "DIGEST", "IMAGE ID", "PLATFORM", "SIZE", "CREATED", "USED BY", "KEPT", "SIGNED BY"}
		}
		rows = append(rows, header)
	}
	for i := range list {
		img := &list[i]
		size, platform := Size(img.Size), img.Platform
		if img.Damaged {
			size, platform = "<unknown>", cmp.Or(platform, "<unknown>")
		}
		if isRepeated(list, i) {
			continue
		}
		used := cmp.Or(strings.Join(img.Pods, ","), "<none>")
		if o.Wide {
			id := cmp.Or(img.ID, "<unknown>")
			rows = append(rows,
				[]string{
					img.Name, img.Digest, id, platform, size, img.CreatedAt.UTC().Format(time.RFC3339), used, keptFor(img), signedBy(img),
				})
		} else {
			rows = append(rows,
				[]string{img.Name, shortDigest(img.Digest), platform, size, Age(now.Sub(img.CreatedAt)), used, keptFor(img)})
		}
	}
	return rows
}

// isRepeated reports whether another image of the list has the same row as the one at i, except for its age, and is newer. Archives with
// the same image at two paths, such as those of two pods, are two images.
func isRepeated(list []api.Image, i int) bool {
	img := &list[i]
	for n := range list {
		other := &list[n]
		newer := cmp.Or(other.CreatedAt.Compare(img.CreatedAt), cmp.Compare(i, n)) > 0
		if newer && other.Name == img.Name && other.Digest == img.Digest && other.Platform == img.Platform &&
			slices.Equal(other.Pods, img.Pods) && keptFor(other) == keptFor(img) && signedBy(other) == signedBy(img) {
			return true
		}
	}
	return false
}

// keptFor returns why an image is not removed by podstead image prune.
func keptFor(img *api.Image) string {
	var why []string
	if len(img.Pods) > 0 {
		why = append(why, "in use")
	}
	earlier := slices.DeleteFunc(slices.Clone(img.Generations), func(pod string) bool { return slices.Contains(img.Pods, pod) })
	if len(earlier) > 0 {
		why = append(why, "for rollback of "+strings.Join(earlier, ","))
	}
	if img.File != "" {
		why = append(why, "archive "+img.File)
	}
	if img.Requested != "" {
		why = append(why, img.Requested+" by hand")
	}
	return cmp.Or(strings.Join(why, ", "), "<none>")
}

// signedBy returns the key that has signed an image.
func signedBy(img *api.Image) string {
	if img.Verification == api.ImageUnverified {
		return "<unverified>"
	}
	return cmp.Or(img.VerifiedBy, "<none>")
}

// shortDigest returns the start of a digest, as docker and podman show it.
func shortDigest(digest string) string {
	_, hex, _ := strings.Cut(digest, ":")
	return hex[:min(len(hex), 12)]
}

// HistoryTable returns the rows of the steps of an image's build, the newest first.
func HistoryTable(list []api.ImageHistory, now time.Time) [][]string {
	rows := [][]string{{"CREATED BY", "AGE", "SIZE", "COMMENT"}}
	for i := len(list) - 1; i >= 0; i-- {
		h := &list[i]
		age := "<unknown>"
		if h.Created != nil {
			age = Age(now.Sub(*h.Created))
		}
		by := strings.Join(strings.Fields(h.CreatedBy), " ")
		rows = append(rows, []string{cmp.Or(by, "<missing>"), age, Size(h.Size), h.Comment})
	}
	return rows
}

// Transfer shows the progress of a pull, an import or an export: in one line of a terminal or, for steps, as plain lines elsewhere. The
// zero value with a writer is usable. It is safe for concurrent use: the transport of an import can read the archive for some time after
// the response.
type Transfer struct {
	W     io.Writer
	Width func() int // columns of the terminal; nil: not a terminal

	mu    sync.Mutex
	meter meter
	drawn string
	done  bool
}

// Bytes shows how much of a total was transferred, how fast, and the time left. A total of 0 is not known.
func (t *Transfer) Bytes(what string, done, total int64) {
	if t.Width == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return
	}
	width := max(0, t.Width()-1)
	runes := []rune(plain.Text(progressOf(what, done, total, t.meter.rate(time.Now(), done)).fit("", width)))
	line := string(runes[:min(len(runes), width)])
	if line != t.drawn {
		_, _ = io.WriteString(t.W, clearLine+line)
		t.drawn = line
	}
}

// Counter returns a writer that shows how much of a total was written to it, see [Transfer.Bytes].
func (t *Transfer) Counter(what string, total int64) io.Writer {
	return &counter{transfer: t, what: what, total: total}
}

type counter struct {
	transfer    *Transfer
	what        string
	done, total int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	c.done += int64(len(b))
	c.transfer.Bytes(c.what, c.done, c.total)
	return len(b), nil
}

// Step shows a line if the output is not a terminal.
func (t *Transfer) Step(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Width == nil && !t.done {
		fmt.Fprintln(t.W, plain.Text("podstead: "+line))
	}
}

// Done removes the line from the terminal. Nothing is shown afterwards.
func (t *Transfer) Done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = true
	if t.drawn != "" {
		_, _ = io.WriteString(t.W, clearLine)
		t.drawn = ""
	}
}

// Size is a number of bytes as text, as in explanations.
func Size[N int64 | uint64](bytes N) string { return explain.Size(int64(bytes)) }
