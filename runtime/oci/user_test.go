package oci

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

func TestUserOf(t *testing.T) {
	type (
		pod = spec.PodSecurityContext
		own = spec.SecurityContext
	)
	yes, no := new(true), new(false)
	for _, test := range []struct {
		name  string
		image string
		pod   *pod
		own   *own
		want  User
		err   string
	}{
		{name: "not set", want: User{Primary: "0", Member: "0"}},
		{name: "user of the image", image: "app", want: User{Primary: "app", Member: "app"}},
		{name: "user and group of the image", image: "app:staff", want: User{Primary: "app:staff", Member: "app"}},
		{name: "group without a user", image: ":staff", want: User{Primary: "0:staff", Member: "0"}},
		{
			name: "user of the pod drops the image's group", image: "app:staff", pod: &pod{RunAsUser: new(int64(7))},
			want: User{Primary: "7", Member: "7"},
		},
		{
			name: "user and group of the container override the pod's", pod: &pod{RunAsUser: new(int64(7)), RunAsGroup: new(int64(8))},
			own: &own{RunAsUser: new(int64(0)), RunAsGroup: new(int64(0))}, want: User{Primary: "0:0", Member: "0"},
		},
		{
			name: "group for the image's user", image: "app:staff", own: &own{RunAsGroup: new(int64(8))},
			want: User{Primary: "app:8", Member: "app"},
		},
		{
			name: "supplemental groups", image: "app",
			pod:  &pod{SupplementalGroups: []int64{9, 3, 9}, SupplementalGroupsPolicy: "Merge", FSGroup: new(int64(5))},
			want: User{Primary: "app", Member: "app", Groups: []uint32{3, 5, 9}},
		},
		{
			name: "supplemental groups with policy Strict", image: "app",
			pod:  &pod{SupplementalGroups: []int64{9}, SupplementalGroupsPolicy: "Strict"},
			want: User{Primary: "app", Groups: []uint32{9}},
		},
		{
			name: "runAsNonRoot, image without a user", pod: &pod{RunAsNonRoot: yes},
			err: "container has runAsNonRoot and image will run as root (pod: \"web_default(uid)\", container: app)",
		},
		{name: "runAsNonRoot, image with user 0", image: "0:5", own: &own{RunAsNonRoot: yes}, err: "image will run as root"},
		{name: "runAsNonRoot, image with user 000", image: "000", own: &own{RunAsNonRoot: yes}, err: "image will run as root"},
		{
			name: "runAsNonRoot, image with a user name", image: "app", pod: &pod{RunAsNonRoot: yes},
			err: "image has non-numeric user (app), cannot verify user is non-root",
		},
		{
			name: "runAsNonRoot, image with a numeric user", image: "7:app", pod: &pod{RunAsNonRoot: yes},
			want: User{Primary: "7:app", Member: "7"},
		},
		{
			name: "runAsNonRoot and runAsUser 0", image: "7", pod: &pod{RunAsNonRoot: yes}, own: &own{RunAsUser: new(int64(0))},
			err: "container's runAsUser breaks non-root policy",
		},
		{
			name: "runAsNonRoot and runAsUser, image with a user name", image: "app",
			pod: &pod{RunAsNonRoot: yes, RunAsUser: new(int64(7))}, want: User{Primary: "7", Member: "7"},
		},
		{
			name: "container overrides runAsNonRoot with false", pod: &pod{RunAsNonRoot: yes}, own: &own{RunAsNonRoot: no},
			want: User{Primary: "0", Member: "0"},
		},
		{
			name: "container overrides runAsNonRoot with true", pod: &pod{RunAsNonRoot: no}, own: &own{RunAsNonRoot: yes},
			err: "will run as root",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &spec.Pod{Name: "web", SecurityContext: test.pod}
			got, err := UserOf(p, &spec.Container{Name: "app", SecurityContext: test.own}, "uid", test.image)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
