package spec

import "fmt"

// Volume is a volume of the pod. At most one of the sources is set. A volume without a source is an `emptyDir`.
type Volume struct {
	// Name of the volume, a DNS label that is unique in the pod. Required.
	Name string `json:"name"`
	// Empty directory that is deleted with the pod.
	EmptyDir *EmptyDirVolume `json:"emptyDir,omitempty"`
	// File or directory of the host.
	HostPath *HostPathVolume `json:"hostPath,omitempty"`
	// Named volume on this host that outlives the pod.
	PersistentVolumeClaim *ClaimVolume `json:"persistentVolumeClaim,omitempty"`
	// Keys of a config map as files.
	ConfigMap *ConfigMapVolume `json:"configMap,omitempty"`
	// Keys of a secret as files in a tmpfs.
	Secret *SecretVolume `json:"secret,omitempty"`
	// Several sources in one directory.
	Projected *ProjectedVolume `json:"projected,omitempty"`
	// Fields of the pod as files.
	DownwardAPI *DownwardAPIVolume `json:"downwardAPI,omitempty"`
	// Read-only content of an image.
	Image *ImageVolume `json:"image,omitempty"`
}

// String says where the files of the volume come from, for people.
func (v *Volume) String() string {
	switch {
	case v.EmptyDir != nil:
		text := "empty directory"
		if v.EmptyDir.InHugePages() {
			text += " in huge pages"
		} else if v.EmptyDir.Medium != "" {
			text += " in memory"
		}
		if v.EmptyDir.SizeLimit != nil {
			text += ", limit " + v.EmptyDir.SizeLimit.String()
		}
		return text
	case v.HostPath != nil:
		return "host path " + v.HostPath.Path
	case v.PersistentVolumeClaim != nil:
		return "persistent volume " + v.PersistentVolumeClaim.ClaimName
	case v.ConfigMap != nil:
		return "config map " + v.ConfigMap.Name
	case v.Secret != nil:
		return "secret " + v.Secret.SecretName
	case v.Projected != nil:
		return fmt.Sprintf("%d projected sources", len(v.Projected.Sources))
	case v.DownwardAPI != nil:
		return "fields of the pod"
	case v.Image != nil:
		return "image " + v.Image.Reference
	}
	return ""
}

// EmptyDirVolume is an empty directory. It is kept across restarts of containers and deleted with the pod.
type EmptyDirVolume struct {
	// `Memory` for a tmpfs, `HugePages` for the huge pages that containers request, or those of one size such as `HugePages-2Mi`. Empty for
	// the disk. Default: empty.
	Medium string `json:"medium,omitempty"`
	// Maximum size; the pod is evicted if a volume on the disk or in huge pages exceeds it. Each file, directory and link counts as at
	// least 4Ki. Default: no limit.
	SizeLimit *Quantity `json:"sizeLimit,omitempty"`
	// Mode of the directory, 0 to 0o1777. With `fsGroup` the group can read and write it, and files in it have the group. Default: 0o777.
	Mode *int32 `json:"mode,omitempty"`
}

// HostPathVolume is a file or directory of the host.
type HostPathVolume struct {
	// Path on the host; a relative path is relative to the pod file. Required.
	Path string `json:"path"`
	// What to check or create before the mount. Default: nothing.
	Type HostPathType `json:"type,omitempty"`
}

// HostPathType tells what must exist at a host path, or is created there, before the mount.
type HostPathType string

// The host path types. The empty type checks nothing.
const (
	HostPathUnset             HostPathType = ""
	HostPathDirectoryOrCreate HostPathType = "DirectoryOrCreate"
	HostPathDirectory         HostPathType = "Directory"
	HostPathFileOrCreate      HostPathType = "FileOrCreate"
	HostPathFile              HostPathType = "File"
	HostPathSocket            HostPathType = "Socket"
	HostPathCharDevice        HostPathType = "CharDevice"
	HostPathBlockDevice       HostPathType = "BlockDevice"
)

// ClaimVolume is a named volume on this host. It is created on first use and outlives the pod.
type ClaimVolume struct {
	// Name of the volume. Required.
	ClaimName string `json:"claimName"`
	// Mount the volume read-only. Default: false.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// ConfigMapVolume has the keys of a config map as files.
type ConfigMapVolume struct {
	// Name of the config map. Required.
	Name string `json:"name"`
	// Keys and their paths. Default: all keys, each as a file of its name.
	Items []KeyToPath `json:"items,omitempty"`
	// Mode of the files, 0 to 0o777. Default: 0o644.
	DefaultMode *int32 `json:"defaultMode,omitempty"`
	// Start the pod if the config map or a key does not exist. Default: false.
	Optional bool `json:"optional,omitempty"`
}

// SecretVolume has the keys of a secret as files in a tmpfs.
type SecretVolume struct {
	// Name of the secret. Required.
	SecretName string `json:"secretName"`
	// Keys and their paths. Default: all keys, each as a file of its name.
	Items []KeyToPath `json:"items,omitempty"`
	// Mode of the files, 0 to 0o777. Default: 0o644.
	DefaultMode *int32 `json:"defaultMode,omitempty"`
	// Start the pod if the secret or a key does not exist. Default: false.
	Optional bool `json:"optional,omitempty"`
}

// KeyToPath maps a key to a file.
type KeyToPath struct {
	// Key in the object. Required.
	Key string `json:"key"`
	// Relative path of the file, without `..`. Required.
	Path string `json:"path"`
	// Mode of the file, 0 to 0o777. Default: `defaultMode` of the volume.
	Mode *int32 `json:"mode,omitempty"`
}

// ProjectedVolume has several sources in one directory.
type ProjectedVolume struct {
	// Sources of the files. Required.
	Sources []Projection `json:"sources,omitempty"`
	// Mode of the files, 0 to 0o777. Default: 0o644.
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// Projection is a source of a projected volume. Exactly one field is set.
type Projection struct {
	// Config map.
	ConfigMap *KeyProjection `json:"configMap,omitempty"`
	// Secret.
	Secret *KeyProjection `json:"secret,omitempty"`
	// Fields of the pod.
	DownwardAPI *DownwardProjection `json:"downwardAPI,omitempty"`
}

// KeyProjection projects the keys of a config map or a secret.
type KeyProjection struct {
	// Name of the object. Required.
	Name string `json:"name"`
	// Keys and their paths. Default: all keys, each as a file of its name.
	Items []KeyToPath `json:"items,omitempty"`
	// Start the pod if the object or a key does not exist. Default: false.
	Optional bool `json:"optional,omitempty"`
}

// DownwardProjection projects fields of the pod.
type DownwardProjection struct {
	// Files and their fields.
	Items []DownwardFile `json:"items,omitempty"`
}

// DownwardAPIVolume has fields of the pod as files.
type DownwardAPIVolume struct {
	// Files and their fields.
	Items []DownwardFile `json:"items,omitempty"`
	// Mode of the files, 0 to 0o777. Default: 0o644.
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// DownwardFile is a file of the downward API. Exactly one of the two references is set.
type DownwardFile struct {
	// Relative path of the file, without `..`. Required.
	Path string `json:"path"`
	// Field of the pod.
	FieldRef *FieldRef `json:"fieldRef,omitempty"`
	// Request or limit of a container.
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef,omitempty"`
	// Mode of the file, 0 to 0o777. Default: `defaultMode` of the volume.
	Mode *int32 `json:"mode,omitempty"`
}

// ImageVolume is the read-only content of an image.
type ImageVolume struct {
	// Image reference. Required.
	Reference string `json:"reference,omitempty"`
	// When to pull the image. Default: as `imagePullPolicy` of containers.
	PullPolicy PullPolicy `json:"pullPolicy,omitempty"`
}

// VolumeMount mounts a volume of the pod in a container.
type VolumeMount struct {
	// Name of the volume. Required.
	Name string `json:"name"`
	// Absolute path in the container, without `:`, unique in the container. Required.
	MountPath string `json:"mountPath"`
	// Relative path in the volume, without `..`. Default: the root of the volume.
	SubPath string `json:"subPath,omitempty"`
	// As `subPath`, with `$(NAME)` expanded. Excludes `subPath`.
	SubPathExpr string `json:"subPathExpr,omitempty"`
	// Mount read-only. Default: false.
	ReadOnly bool `json:"readOnly,omitempty"`
	// `Disabled`, `IfPossible` or `Enabled`: read-only mounts below the volume; the last two require `readOnly`. Default: `Disabled`.
	RecursiveReadOnly string `json:"recursiveReadOnly,omitempty"`
	// `None`, `HostToContainer` or `Bidirectional`; the last requires a privileged container. Default: `None`.
	MountPropagation string `json:"mountPropagation,omitempty"`
}

// ConfigMap is an inline config map. It exists for this pod only.
type ConfigMap struct {
	// Name of the config map. Required.
	Name string `json:"name"`
	// Values by key.
	Data map[string]string `json:"data,omitempty"`
	// File with lines KEY=value, as for `kubectl create --from-env-file`; its keys are added to `data` when the pod is created.
	EnvFile string `json:"envFile,omitempty"`
}

// Secret is an inline secret. It exists for this pod only. Messages never contain its values.
type Secret struct {
	// Name of the secret. Required.
	Name string `json:"name"`
	// Values by key, in plain text.
	Data SecretData `json:"data,omitempty"`
	// File with lines KEY=value, as for `kubectl create --from-env-file`; its keys are added to `data` when the pod is created.
	EnvFile string `json:"envFile,omitempty"`
	// Name of a systemd credential with the value: one of the daemon, or with `credentialFile` the name that it was encrypted with. The
	// key is the name of the credential. Excludes `data` and `envFile`. Default: the base name of `credentialFile`.
	Credential string `json:"credential,omitempty"`
	// File with a credential that systemd-creds(1) has encrypted for this host, with its key or its TPM. It is decrypted when the pod
	// starts, and kept in memory only. Excludes `data` and `envFile`.
	CredentialFile string `json:"credentialFile,omitempty"`
}
