package view

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

// TestEqualImages: an image that two archives have is one row, unless something tells the rows apart.
func TestEqualImages(t *testing.T) {
	now := time.Date(2026, 11, 28, 20, 0, 0, 0, time.UTC)
	image := func(age time.Duration, pods ...string) api.Image {
		return api.Image{Name: "localhost/shop:1", Digest: "sha256:d0ab5906cf3e0000", Size: 1 << 20, CreatedAt: now.Add(-age), Pods: pods}
	}
	older, newer := image(time.Hour), image(time.Minute)
	for _, test := range []struct {
		list []api.Image
		want []string
	}{
		{[]api.Image{older, newer}, []string{"60s"}},
		{[]api.Image{newer, older}, []string{"60s"}},
		{[]api.Image{older, image(time.Minute, "web")}, []string{"60m", "60s"}},
		{[]api.Image{newer, newer}, []string{"60s"}},
	} {
		var ages []string
		for _, row := range ImageTable(test.list, TableOptions{NoHeader: true}, now) {
			ages = append(ages, row[4])
		}
		if diff := cmp.Diff(test.want, ages); diff != "" {
			t.Errorf("%v: ages of the rows (-want +got):\n%s", test.list, diff)
		}
	}
}

// TestTransfer checks that progress is one line on a terminal, and that there are only steps elsewhere.
func TestTransfer(t *testing.T) {
	var out strings.Builder
	tr := Transfer{W: &out, Width: func() int { return 30 }}
	tr.Bytes("Pulling image \"a\x1b:1\"", 0, 0)
	tr.Bytes("Pulling image \"a\x1b:1\"", 1<<20, 4<<20)
	tr.Bytes("Pulling image \"a\x1b:1\"", 1<<20, 4<<20) // the same text is not drawn again
	tr.Step("a step")
	tr.Bytes("Exporting", 5<<20, 0)
	tr.Done()
	tr.Done()
	want := clearLine + `Pulling image "a\x1b:1"` + clearLine + `Pulling image "a\x1b:1": 1Mi ` + clearLine + "Exporting: 5Mi" + clearLine
	if out.String() != want {
		t.Errorf("terminal %q, want %q", out.String(), want)
	}
	out.Reset()
	tr = Transfer{W: &out}
	tr.Bytes("Pulling", 1, 2)
	tr.Step("a \x1bstep")
	tr.Done()
	if want := "podstead: a \\x1bstep\n"; out.String() != want {
		t.Errorf("elsewhere %q, want %q", out.String(), want)
	}
}

// TestTransferIsDone: the transport of an import may still read the archive after the response. Nothing is drawn then.
func TestTransferIsDone(t *testing.T) {
	var out strings.Builder
	tr := Transfer{W: &out, Width: func() int { return 30 }}
	var reads sync.WaitGroup
	reads.Go(func() {
		for n := range int64(100) {
			tr.Bytes("Importing", n<<20, 0)
		}
	})
	tr.Done()
	reads.Wait()
	tr.Bytes("Importing", 1000<<20, 0)
	if text := out.String(); strings.Contains(text, "1000Mi") || text != "" && !strings.HasSuffix(text, clearLine) {
		t.Errorf("%q remains on the terminal", text)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1024: "1Ki", 1536: "1Ki", 10 << 10: "10Ki", 10<<10 + 600: "10Ki", 1 << 20: "1Mi", 1<<20 + 1<<19: "1.5Mi",
		201 << 20: "201Mi", 201<<20 + 1<<19: "201.5Mi", 5<<30 + 1<<29: "5.5Gi", 1 << 62: "4Ei",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
