package volume

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

func TestCollect(t *testing.T) {
	values := &fakeValues{
		configMaps: map[string]map[string]string{"shop": {"a": "1", "b": "2"}},
		secrets:    map[string]map[string]string{"db": {"password": "x"}},
	}
	configMap := func(v spec.ConfigMapVolume) spec.Volume { return spec.Volume{ConfigMap: &v} }
	secret := func(v spec.SecretVolume) spec.Volume { return spec.Volume{Secret: &v} }
	tests := []struct {
		name   string
		volume spec.Volume
		want   map[string]string // mode and content by path
		err    string
	}{
		{"all keys", configMap(spec.ConfigMapVolume{Name: "shop"}), map[string]string{"a": "0644 1", "b": "0644 2"}, ""},
		{
			"items", configMap(spec.ConfigMapVolume{
				Name: "shop", DefaultMode: new(int32(0o400)),
				Items: []spec.KeyToPath{{Key: "a", Path: "./x//a"}, {Key: "b", Path: "b", Mode: new(int32(0o755))}},
			}),
			map[string]string{"x/a": "0400 1", "b": "0755 2"},
			"",
		},
		{"missing config map", configMap(spec.ConfigMapVolume{Name: "none"}), nil, `configmap "none" not found`},
		{"missing optional config map", configMap(spec.ConfigMapVolume{Name: "none", Optional: true}), nil, ""},
		{
			"missing key", configMap(spec.ConfigMapVolume{Name: "shop", Items: []spec.KeyToPath{{Key: "c", Path: "c"}}}),
			nil, "configmap references non-existent config key: c",
		},
		{
			"missing optional key", configMap(spec.ConfigMapVolume{
				Name: "shop", Optional: true, Items: []spec.KeyToPath{{Key: "c", Path: "c"}, {Key: "a", Path: "a"}},
			}),
			map[string]string{"a": "0644 1"},
			"",
		},
		{"secret", secret(spec.SecretVolume{SecretName: "db"}), map[string]string{"password": "0644 x"}, ""},
		{"missing secret", secret(spec.SecretVolume{SecretName: "none"}), nil, `secret "none" not found`},
		{
			"missing key of a secret", secret(spec.SecretVolume{SecretName: "db", Items: []spec.KeyToPath{{Key: "c", Path: "c"}}}),
			nil, "references non-existent secret key: c",
		},
		{
			"downward API",
			spec.Volume{DownwardAPI: &spec.DownwardAPIVolume{
				DefaultMode: new(int32(0o440)),
				Items: []spec.DownwardFile{
					{Path: "labels", FieldRef: &spec.FieldRef{FieldPath: "metadata.labels"}},
					{Path: "cpu", Mode: new(int32(0o600)), ResourceFieldRef: &spec.ResourceFieldRef{
						ContainerName: "app", Resource: "limits.cpu", Divisor: quantity("1m"),
					}},
				},
			}},
			map[string]string{"labels": "0440 field metadata.labels", "cpu": "0600 app limits.cpu / 1m"},
			"",
		},
		{
			"field without a value",
			spec.Volume{DownwardAPI: &spec.DownwardAPIVolume{Items: []spec.DownwardFile{
				{Path: "ip", FieldRef: &spec.FieldRef{FieldPath: "status.podIP"}},
			}}},
			nil, `downward API file "ip": no address yet`,
		},
		{
			"projected",
			spec.Volume{Projected: &spec.ProjectedVolume{
				DefaultMode: new(int32(0o440)),
				Sources: []spec.Projection{
					{ConfigMap: &spec.KeyProjection{Name: "shop", Items: []spec.KeyToPath{{Key: "a", Path: "conf/a"}}}},
					{Secret: &spec.KeyProjection{Name: "db"}},
					{DownwardAPI: &spec.DownwardProjection{Items: []spec.DownwardFile{
						{Path: "name", FieldRef: &spec.FieldRef{FieldPath: "metadata.name"}},
					}}},
					{Secret: &spec.KeyProjection{Name: "none", Optional: true}},
				},
			}},
			map[string]string{"conf/a": "0440 1", "password": "0440 x", "name": "0440 field metadata.name"},
			"",
		},
		{
			"several missing sources",
			spec.Volume{Projected: &spec.ProjectedVolume{Sources: []spec.Projection{
				{ConfigMap: &spec.KeyProjection{Name: "none"}}, {Secret: &spec.KeyProjection{Name: "none"}},
			}}},
			nil, `configmap "none" not found; secret "none" not found`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			content, err := collect(values, podOf(), &test.volume)
			filetest.WantError(t, err, test.err)
			if test.err != "" {
				return
			}
			got := map[string]string{}
			for name, f := range content {
				got[name] = "0" + permissions(f.Mode) + " " + string(f.Content)
			}
			if test.want == nil {
				test.want = map[string]string{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// permissions returns the permissions in octal.
func permissions(mode fs.FileMode) string {
	digits := ""
	for shift := 6; shift >= 0; shift -= 3 {
		digits += string(rune('0' + mode>>shift&7))
	}
	return digits
}

// A missing object and one that cannot be read are different errors, and optional applies only to the first.
func TestCollectErrors(t *testing.T) {
	volume := &spec.Volume{Secret: &spec.SecretVolume{SecretName: "db", Optional: true}}
	broken := errors.New("input/output error")
	_, err := collect(&fakeValues{err: broken}, podOf(), volume)
	if !errors.Is(err, broken) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unreadable source: %v", err)
	}
	volume.Secret.Optional = false
	if _, err := collect(&fakeValues{}, podOf(), volume); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing source: %v", err)
	}
}
