package container

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/containers"
	containerdoci "github.com/containerd/containerd/v2/pkg/oci"
	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/oci"
)

// TestUnknownUser checks that the error for a user that an image does not have names both.
func TestUnknownUser(t *testing.T) {
	root := os.DirFS(t.TempDir()) // without /etc/passwd
	err := setUser(&specs.Spec{Process: &specs.Process{}}, root, oci.User{Primary: "app"}, "example.com/shop:1")
	if err == nil || !strings.HasPrefix(err.Error(), `find user "app" in /etc/passwd and /etc/group of image "example.com/shop:1": `) {
		t.Errorf("error %v", err)
	}
}

// TestUserAsContainerd compares the user and groups, and errors, with those of containerd.
func TestUserAsContainerd(t *testing.T) {
	const passwd = `root:x:0:0:root:/root:/bin/sh
# comment

app:x:1000:2000::/:
other:x:1000:3000::/:
app:x:7:7::/:
odd:x:-1:4294967295::/:
12:x:13:14::/:
`
	const group = `root:x:0:
app:x:2000:app
staff:x:50:other,app
# wheel:x:10:app
wheel:x:10:root,app,other
staff:x:51:app
12:x:99:12
odd:x:-5:odd,app
`
	images := []struct {
		name  string
		files map[string]string // a content that begins with a slash is the target of a link
	}{
		{"users and groups", map[string]string{"etc/passwd": passwd, "etc/group": group}},
		{"no files", nil},
		{"no groups", map[string]string{"etc/passwd": passwd}},
		{"no users", map[string]string{"etc/group": group}},
		{"empty files", map[string]string{"etc/passwd": "", "etc/group": ""}},
		{"links", map[string]string{"etc/passwd": "/usr/passwd", "etc/group": "/usr/group", "usr/passwd": passwd, "usr/group": group}},
		{"a long line", map[string]string{"etc/passwd": "x:" + strings.Repeat("x", 1<<17), "etc/group": group}},
		{"a long line of groups", map[string]string{"etc/passwd": passwd, "etc/group": strings.Repeat("x", 1<<21)}},
	}
	users := []oci.User{{Primary: "app", Groups: []uint32{1, 50, 2000}}}
	for _, name := range []string{
		"0", "root", "app", "other", "odd", "12", "13", "1000", "5000", "none", "1x", "+7", "a:b:c",
		"-1", "2147483647", "2147483648", "99999999999999999999",
	} {
		users = append(users, oci.User{Primary: name}, oci.User{Primary: name, Member: name})
		for _, group := range []string{"0", "staff", "12", "70", "none", "-1", "2147483648", "99999999999999999999"} {
			users = append(users, oci.User{Primary: name + ":" + group, Member: name})
		}
	}
	for _, image := range images {
		t.Run(image.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range image.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				write := func() error { return os.WriteFile(path, []byte(content), 0o600) }
				if strings.HasPrefix(content, "/") {
					write = func() error { return os.Symlink(content, path) }
				}
				if err := write(); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			for _, u := range users {
				want, wantErr := containerdUser(t, dir, u)
				s := specs.Spec{Process: &specs.Process{}}
				err := setUser(&s, root.FS(), u, "")
				message := ""
				if err != nil {
					_, message, _ = strings.Cut(err.Error(), `of image "": `)
				}
				if message != wantErr {
					t.Errorf("%+v: error %q, want %q", u, message, wantErr)
				} else if diff := cmp.Diff(want, s.Process.User); err == nil && diff != "" {
					t.Errorf("%+v: containerd (-), podstead (+):\n%s", u, diff)
				}
			}
		})
	}
}

// containerdUser returns the user that containerd sets, with the groups sorted, or the text of its error.
func containerdUser(t *testing.T, dir string, u oci.User) (user specs.User, message string) {
	t.Helper()
	opts := []containerdoci.SpecOpts{containerdoci.WithUser(u.Primary)}
	if u.Member != "" {
		opts = append(opts, containerdoci.WithAdditionalGIDs(u.Member))
	}
	s := specs.Spec{Root: &specs.Root{Path: dir}, Process: &specs.Process{}, Linux: &specs.Linux{}}
	if err := containerdoci.Compose(opts...)(t.Context(), nil, &containers.Container{}, &s); err != nil {
		return specs.User{}, err.Error()
	}
	user = s.Process.User
	user.AdditionalGids = append(user.AdditionalGids, u.Groups...)
	slices.Sort(user.AdditionalGids)
	user.AdditionalGids = slices.Compact(user.AdditionalGids)
	return user, ""
}
