package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
)

// fakeStore is a [Store] in memory.
type fakeStore struct {
	entries []image.Entry
	pull    error
	removed bool // by another client, while it is pulled
	onList  func()
	// onForget is called after ForgetUnless has removed images.
	onForget func()

	claims    []image.Claim
	unclaimed error            // why they cannot be read
	onClaims  func()           // called after they were read
	forget    map[string]error // by record

	login          error
	registry, user string // of the last login
}

func (s *fakeStore) Catalog(context.Context) ([]image.Entry, error) {
	if s.onList != nil {
		s.onList()
	}
	return slices.Clone(s.entries), nil
}

func (s *fakeStore) Detail(_ context.Context, record string) (image.Detail, error) {
	for _, e := range s.entries {
		if e.Record == record {
			return image.Detail{
				Entry:  e,
				Config: ocispec.Image{History: []ocispec.History{{CreatedBy: "ADD"}, {CreatedBy: "CMD", EmptyLayer: true}}},
				Layers: []ocispec.Descriptor{{Size: 5}, {Size: 7}},
			}, nil
		}
	}
	return image.Detail{}, errors.New("not found")
}

func (*fakeStore) Programs(_ context.Context, d *image.Detail, names []string) (map[string]string, []string, error) {
	if d.Name == redis {
		return nil, nil, errors.New("no disk")
	}
	return map[string]string{names[0]: "/bin/" + names[0]}, []string{"/bin"}, nil
}

func (*fakeStore) Platform(text string) (string, error) {
	if text == "bad" {
		return "", errors.New("platform is invalid")
	}
	return text, nil
}

func (s *fakeStore) Pull(
	_ context.Context, ref, _ string, _ spec.PullPolicy, progress func(image.Progress),
) (string, image.Image, error) {
	progress(image.Progress{Bytes: 1, TotalBytes: 2, TotalLayers: 1})
	if s.pull != nil {
		return "", image.Image{}, s.pull
	}
	if !s.removed {
		s.entries = append(s.entries, entry(ref))
	}
	img := entry(ref).Image
	img.Pulled = true
	return ref, img, nil
}

func (s *fakeStore) Import(context.Context, io.Reader, bool, ...signature.Signature) ([]image.Image, error) {
	if s.pull != nil {
		return nil, s.pull
	}
	s.entries = append(s.entries, entry("docker.io/library/imported:1"))
	return []image.Image{{Name: "docker.io/library/imported:1"}}, nil
}

func (*fakeStore) Export(_ context.Context, w io.Writer, records ...string) error {
	_, err := io.WriteString(w, strings.Join(records, " "))
	return err
}

func (s *fakeStore) Restore(_ context.Context, record string, _ time.Time) (bool, error) {
	if err := s.forget[record]; err != nil {
		return false, err
	}
	return slices.ContainsFunc(s.entries, func(e image.Entry) bool { return e.Record == record }), nil
}

func (*fakeStore) Signatures(_ context.Context, record string) ([]signature.Signature, error) {
	if record == redis {
		return nil, &image.Error{Reason: image.ReasonPull, Err: errors.New("connection refused")}
	}
	return []signature.Signature{{Bundle: []byte("{")}, {Payload: []byte(record), Base64: "YQ=="}, {Payload: []byte("no signature")}}, nil
}

func (s *fakeStore) Claims(context.Context) ([]image.Claim, error) {
	claims := slices.Clone(s.claims)
	if s.onClaims != nil {
		s.onClaims()
	}
	return claims, s.unclaimed
}

// keep claims the image of the entry with an index for a rollback.
func (s *fakeStore) keep(n int, pod string) {
	s.claims = append(s.claims, image.Claim{By: image.Generation, Who: pod, Image: s.entries[n].ConfigDigest})
}

// request claims an image for a person.
func (s *fakeStore) request(record string) {
	s.claims = append(s.claims, image.Claim{By: image.Person, Image: record})
}

func (s *fakeStore) Forget(_ context.Context, record string) error {
	if err := s.forget[record]; err != nil {
		return err
	}
	s.entries = slices.DeleteFunc(s.entries, func(e image.Entry) bool { return e.Record == record })
	return nil
}

func (s *fakeStore) ForgetUnless(ctx context.Context, records []string, used func() (bool, error)) (bool, error) {
	before := slices.Clone(s.entries)
	for _, record := range records {
		if err := s.Forget(ctx, record); err != nil {
			if image.IsNotFound(err) {
				continue
			}
			return false, err
		}
	}
	if s.onForget != nil {
		s.onForget()
	}
	inUse, err := used()
	if inUse || err != nil {
		s.entries = before
		return false, err
	}
	return len(s.entries) < len(before), nil
}

func (*fakeStore) Free(_ context.Context, remove func() error) (int64, error) { return 42, remove() }

func entry(name string) image.Entry {
	return image.Entry{
		Image: image.Image{
			Name: name, ConfigDigest: "sha256:config of " + name, Target: ocispec.Descriptor{Digest: digest.FromString(name)},
		},
		Platform: "linux/amd64", Record: name,
	}
}

// fakePods is a [Pods] and a [Files].
type fakePods struct {
	pods    []supervisor.Snapshot
	planned []*spec.Pod
	files   []*spec.Pod
	err     error
}

func (p *fakePods) Pods() []supervisor.Snapshot { return p.pods }
func (p *fakePods) Planned() []*spec.Pod        { return p.planned }

func (p *fakePods) Definitions(context.Context) ([]*spec.Pod, error) { return p.files, p.err }

func pod(name string, images ...string) *spec.Pod {
	p := &spec.Pod{Name: name}
	for _, i := range images {
		p.Containers = append(p.Containers, spec.Container{Image: i})
	}
	return p
}

const nginx, redis = "docker.io/library/nginx:1", "docker.io/library/redis:1"

// newHost returns a host with entries for all names, of which nginx is used by a pod that runs.
func newHost(names ...string) (*fakeStore, *fakePods, *Images) {
	s, p := &fakeStore{}, &fakePods{pods: []supervisor.Snapshot{{Pod: pod("web", "nginx:1")}}}
	for _, name := range names {
		s.entries = append(s.entries, entry(name))
	}
	return s, p, New(s, p, p)
}

func names(list []api.Image) []string {
	names := []string{}
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// wantStatus checks the status and the message of an error.
func wantStatus(t *testing.T, err error, status int, message string) {
	t.Helper()
	e, ok := errors.AsType[*api.Error](err)
	if !ok || e.Status != status || !strings.Contains(e.Message, message) {
		t.Errorf("error %#v, want status %d with %q", err, status, message)
	}
}

func TestUsers(t *testing.T) {
	archived := entry("docker.io/library/shop:1")
	record, err := image.ArchiveRecord("/a.tar", archived.Name)
	if err != nil {
		t.Fatal(err)
	}
	archived.Record, archived.Scoped = record, true
	s, p, host := newHost(nginx, redis, "docker.io/library/shop:1", "docker.io/library/volume:1", "docker.io/library/spare:1")
	foreign := entry(redis)
	foreign.Foreign, foreign.Record, foreign.Platform = true, "platform/linux-arm64/"+redis, "linux/arm64"
	s.entries = append(s.entries, archived, foreign)
	shop := pod("shop", "shop:1")
	shop.ImageArchives = []string{"/a.tar"}
	volume := pod("volume", "redis@"+digest.FromString(redis).String())
	volume.Volumes = []spec.Volume{{Image: &spec.ImageVolume{Reference: "volume:1"}}}
	p.pods = append(p.pods, supervisor.Snapshot{Pod: shop, AtRest: true})
	p.planned, p.files = []*spec.Pod{volume}, []*spec.Pod{pod("file", "redis:1")}
	list, err := host.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for n, img := range list {
		got[s.entries[n].Record] = strings.Join(img.Pods, ",") + " running " + strings.Join(img.Running, ",")
	}
	want := map[string]string{
		nginx: "web running web", redis: "file,volume running volume", record: "shop running ", "docker.io/library/shop:1": " running ",
		"docker.io/library/volume:1": "volume running volume", foreign.Record: " running ", "docker.io/library/spare:1": " running ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRemove(t *testing.T) {
	s, p, host := newHost(nginx, redis, "docker.io/library/kept:1", "docker.io/library/spare:1")
	s.keep(2, "web")
	p.files = []*spec.Pod{pod("file", "redis:1"), pod("other", "redis:1")}
	for _, c := range []struct {
		name, platform string
		force          bool
		status         int
		message        string
	}{
		{"nginx:1", "", false, http.StatusConflict, `remove image "docker.io/library/nginx:1": it is in use by pod "web"`},
		{"nginx:1", "", true, http.StatusConflict, "in use"},
		{"redis:1", "", false, http.StatusConflict, `pods file, other, which does not run, uses it`},
		{"kept:1", "", false, http.StatusConflict, `it is kept for a rollback of pod "web"`},
		{"none", "", false, http.StatusNotFound, `no such image "none"`},
		{"spare:1", "linux/arm64", false, http.StatusNotFound, "for platform linux/arm64"},
		{"spare:1", "bad", false, http.StatusBadRequest, "invalid"},
		{"UPPER", "", false, http.StatusBadRequest, "UPPER"},
	} {
		_, err := host.Remove(t.Context(), c.name, c.platform, c.force)
		wantStatus(t, err, c.status, c.message)
	}
	if len(s.entries) != 4 {
		t.Fatalf("%d images are left", len(s.entries))
	}
	for _, name := range []string{"redis:1", "kept:1"} {
		if _, err := host.Remove(t.Context(), name, "", true); err != nil {
			t.Error(err)
		}
	}
	removed, err := host.Remove(t.Context(), "spare:1", "linux/amd64", false)
	if err != nil || removed.Freed != 42 || !cmp.Equal(names(removed.Items), []string{"docker.io/library/spare:1"}) {
		t.Errorf("removed %+v, %v", removed, err)
	}
	p.err = errors.New("disk does not respond")
	_, err = host.Remove(t.Context(), "nginx:1", "", false)
	wantStatus(t, err, http.StatusInternalServerError, "disk does not respond")
	if list, err := host.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("list without the pods directory: %v, %v", list, err)
	}
}

func TestPrune(t *testing.T) {
	s, p, host := newHost(nginx, redis, "docker.io/library/kept:1", "docker.io/library/hand:1", "docker.io/library/spare:1")
	s.keep(2, "web")
	s.request("docker.io/library/hand:1")
	p.files = []*spec.Pod{pod("file", "redis:1")}
	want := []string{"docker.io/library/spare:1"}
	removed, err := host.Prune(t.Context(), false, true)
	if err != nil || !cmp.Equal(names(removed.Items), want) || len(s.entries) != 5 {
		t.Errorf("dry run: %+v, %v", removed, err)
	}
	// A pod that begins to use an image meanwhile keeps it.
	looks := 0
	s.onClaims = func() {
		if looks++; looks == 1 {
			p.planned = []*spec.Pod{pod("new", "spare:1")}
		}
	}
	p.planned = nil
	if removed, err = host.Prune(t.Context(), false, false); err != nil || len(removed.Items) > 0 {
		t.Errorf("an image that a new pod uses: %+v, %v", removed, err)
	}
	s.onClaims, p.planned = nil, nil
	if removed, err = host.Prune(t.Context(), false, false); err != nil || !cmp.Equal(names(removed.Items), want) || removed.Freed != 42 {
		t.Errorf("prune: %+v, %v", removed, err)
	}
	removed, err = host.Prune(t.Context(), true, false)
	if want := []string{"docker.io/library/hand:1"}; err != nil || !cmp.Equal(names(removed.Items), want) {
		t.Errorf("prune all: %+v, %v", removed, err)
	}
	p.err = errors.New("disk does not respond")
	if _, err := host.Prune(t.Context(), true, false); err == nil {
		t.Error("pruned without knowing the files")
	}
}

// TestPruneReadsImagesOnce: the images are listed once for all removals, and one that a person pulls meanwhile is kept.
func TestPruneReadsImagesOnce(t *testing.T) {
	s, _, host := newHost(nginx, "docker.io/library/a:1", "docker.io/library/b:1", "docker.io/library/c:1")
	lists := 0
	s.onList = func() { lists++ }
	s.onClaims = func() {
		if s.claims == nil {
			s.request("docker.io/library/b:1")
		}
	}
	removed, err := host.Prune(t.Context(), false, false)
	if want := []string{"docker.io/library/a:1", "docker.io/library/c:1"}; err != nil || lists != 1 ||
		!cmp.Equal(names(removed.Items), want) {
		t.Errorf("%+v after %d lists, %v", removed, lists, err)
	}
}

// TestPrunePartially: what was removed before an error is reported, and deleted from the disk.
func TestPrunePartially(t *testing.T) {
	s, _, host := newHost("docker.io/library/a:1", "docker.io/library/b:1", "docker.io/library/c:1")
	s.forget = map[string]error{"docker.io/library/b:1": errors.New("disk does not respond")}
	removed, err := host.Prune(t.Context(), false, false)
	wantStatus(t, err, http.StatusInternalServerError, "prune images: disk does not respond")
	if want := []string{"docker.io/library/a:1"}; !cmp.Equal(names(removed.Items), want) || removed.Freed != 42 {
		t.Errorf("removed %+v", removed)
	}
}

func (s *fakeStore) Login(_ context.Context, registry string, l credentials.Login) error {
	if s.login == nil {
		s.registry, s.user = registry, l.Username
	}
	return s.login
}

func (s *fakeStore) Logout(_ context.Context, registry string) error {
	if registry != s.registry {
		return credentials.ErrNotLoggedIn
	}
	return s.login
}

func TestLogin(t *testing.T) {
	s, _, host := newHost()
	name, err := host.Login(t.Context(), api.LoginRequest{Registry: "https://index.docker.io/v1/", Username: "me", Password: "secret"})
	if err != nil || name != "docker.io" || s.registry != "docker.io" || s.user != "me" {
		t.Errorf("logged in to %q as %q: %q, %v", s.registry, s.user, name, err)
	}
	if name, err := host.Logout(t.Context(), "registry-1.docker.io"); err != nil || name != "docker.io" {
		t.Errorf("logged out of %q, %v", name, err)
	}
	_, err = host.Logout(t.Context(), "other.example:5000")
	wantStatus(t, err, http.StatusNotFound, `log out of "other.example:5000": not logged in`)
	for _, bad := range []string{"host/path", "*.example", "http://", "user:pass@host"} {
		_, err = host.Login(t.Context(), api.LoginRequest{Registry: bad})
		wantStatus(t, err, http.StatusBadRequest, fmt.Sprintf("log in to %q: a registry must be HOST or HOST:PORT", bad))
		_, err = host.Logout(t.Context(), bad)
		wantStatus(t, err, http.StatusBadRequest, fmt.Sprintf("log out of %q: a registry must be HOST or HOST:PORT", bad))
	}
	for cause, status := range map[error]int{
		image.ErrUnauthorized: http.StatusForbidden, errors.New("refused"): http.StatusBadGateway,
		credentials.ErrFile: http.StatusInternalServerError,
	} {
		s.login = cause
		_, err = host.Login(t.Context(), api.LoginRequest{Registry: "a.example"})
		wantStatus(t, err, status, `log in to "a.example": `+cause.Error())
	}
}

func TestPull(t *testing.T) {
	s, _, host := newHost(nginx)
	var progress []api.PullProgress
	report := func(p api.PullProgress) { progress = append(progress, p) }
	_, _, err := host.Pull(t.Context(), api.PullRequest{Name: "redis"}, report)
	wantStatus(t, err, http.StatusBadRequest, "the name has no registry")
	if e, _ := errors.AsType[*api.Error](err); e.Hint != "use a full name, such as docker.io/library/redis:latest" {
		t.Errorf("hint %q", e.Hint)
	}
	for _, q := range []api.PullRequest{{Name: "UPPER"}, {Name: redis, Platform: "bad"}} {
		_, _, err := host.Pull(t.Context(), q, report)
		wantStatus(t, err, http.StatusBadRequest, "")
	}
	img, pulled, err := host.Pull(t.Context(), api.PullRequest{Name: "nginx:1"}, report) // the name of a local image
	if err != nil || !pulled || img.Name != nginx || len(progress) != 1 || progress[0].Total != 2 {
		t.Errorf("pulled %+v %t, %v, %v", img, pulled, progress, err)
	}
	for status, cause := range map[int]error{
		http.StatusBadGateway:          &image.Error{Reason: image.ReasonPull, Message: "long", Err: errors.New("connection refused")},
		http.StatusServiceUnavailable:  image.ErrClosed,
		http.StatusInternalServerError: errors.New("something"),
	} {
		s.pull = cause
		_, _, err := host.Pull(t.Context(), api.PullRequest{Name: redis}, report)
		wantStatus(t, err, status, "")
		_, err = host.Import(t.Context(), nil, true, nil)
		wantStatus(t, err, status, "")
	}
	s.pull = context.Canceled
	if _, _, err := host.Pull(t.Context(), api.PullRequest{Name: redis}, report); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	s.pull = nil
	list, err := host.Import(t.Context(), nil, true, nil)
	if err != nil || !cmp.Equal(names(list), []string{"docker.io/library/imported:1"}) {
		t.Errorf("imported %v, %v", list, err)
	}
}

// TestPullRemoved: another client removes the image when it is pulled, and before it is listed.
func TestPullRemoved(t *testing.T) {
	s, _, host := newHost()
	s.removed = true
	img, pulled, err := host.Pull(t.Context(), api.PullRequest{Name: redis, Platform: "linux/arm64"}, func(api.PullProgress) {})
	if err != nil || !pulled || img.Name != redis || img.Digest == "" || img.Platform != "linux/arm64" {
		t.Errorf("pulled %+v, %t, %v", img, pulled, err)
	}
}

func TestRestore(t *testing.T) {
	s, _, host := newHost(nginx)
	if restored, err := host.Restore(t.Context(), "docker.io/nginx:1", time.Now()); err != nil || !restored {
		t.Error(restored, err)
	}
	if restored, err := host.Restore(t.Context(), redis, time.Now()); err != nil || restored {
		t.Error(restored, err)
	}
	_, err := host.Restore(t.Context(), "A B", time.Now())
	wantStatus(t, err, http.StatusBadRequest, "A B")
	s.forget = map[string]error{nginx: errors.New("disk is full")}
	_, err = host.Restore(t.Context(), nginx, time.Now())
	wantStatus(t, err, http.StatusInternalServerError, "disk is full")
}

// TestSignatures: a malformed signature would make the import refuse the others.
func TestSignatures(t *testing.T) {
	_, _, host := newHost(nginx, redis)
	list, err := host.Signatures(t.Context(), "nginx:1", "")
	if err != nil || len(list) != 1 {
		t.Fatalf("%q, %v", list, err)
	}
	parsed, err := signature.Parse([]byte(list[0]))
	if err != nil || len(parsed) != 1 || string(parsed[0].Payload) != nginx {
		t.Errorf("%+v, %v", parsed, err)
	}
	_, err = host.Signatures(t.Context(), redis, "")
	wantStatus(t, err, http.StatusBadGateway, "connection refused")
	_, err = host.Signatures(t.Context(), "none", "")
	wantStatus(t, err, http.StatusNotFound, "no such image")
}

func TestInspectAndExport(t *testing.T) {
	_, _, host := newHost(nginx, redis)
	d, err := host.Inspect(t.Context(), "nginx:1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.ImageHistory{{CreatedBy: "ADD", Size: 5}, {CreatedBy: "CMD"}, {Size: 7}}
	if diff := cmp.Diff(want, d.History); diff != "" || !cmp.Equal(d.Pods, []string{"web"}) {
		t.Errorf("detail %+v: %s", d, diff)
	}
	if d.Programs != nil || d.SearchPath != nil {
		t.Errorf("programs %v in %v were not requested", d.Programs, d.SearchPath)
	}
	d, err = host.Inspect(t.Context(), "nginx:1", "", []string{"sh"})
	if err != nil || d.Programs["sh"] != "/bin/sh" || len(d.SearchPath) != 1 {
		t.Errorf("programs %v in %v, %v", d.Programs, d.SearchPath, err)
	}
	_, err = host.Inspect(t.Context(), redis, "", []string{"sh"})
	wantStatus(t, err, http.StatusInternalServerError, "no disk")
	_, err = host.Inspect(t.Context(), "host:1/none:1", "", nil)
	wantStatus(t, err, http.StatusNotFound, "no such image")
	var out strings.Builder
	if err := host.Export(t.Context(), &out, "", []string{"nginx:1", redis, nginx}); err != nil || out.String() != nginx+" "+redis {
		t.Errorf("exported %q, %v", out.String(), err)
	}
	wantStatus(t, host.Export(t.Context(), &out, "", []string{"none"}), http.StatusNotFound, "no such image")
}
