package api

// Hidden replaces the values of environment variables in responses of the read-only socket.
const Hidden = "(hidden)"
