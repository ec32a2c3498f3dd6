{{/* The configuration of the proxy. */}}
{{- define "sojourn.haproxy" -}}
# Everything goes to the active server: the one that says that it is healthy. The others answer 503, and are asked again each
# second.
global
  ssl-default-bind-options ssl-min-ver TLSv1.2

defaults
  mode http
  timeout connect 5s
  # Requests for work are held open for a while; uploads and downloads may stand still as long.
  timeout client 120s
  timeout server 120s
  # A head that comes more slowly is refused, and an idle connection is closed.
  timeout http-request 10s
  timeout http-keep-alive 90s
  option redispatch
  retries 3

resolvers cluster
  parse-resolv-conf
  hold valid 5s

frontend sojourn
  {{- if .Values.proxy.tlsSecret }}
  bind :8642 ssl crt /certificate/server.pem alpn http/1.1
  {{- else }}
  bind :8642
  {{- end }}
  # The server counts callers by this header, and believes its last address alone: the one that this proxy adds.
  option forwardfor
  # It sees one address, that of the proxy. So connections of one address are bounded here.
  stick-table type ipv6 size 100k expire 1m store conn_cur
  tcp-request connection track-sc0 src
  tcp-request connection reject if { sc0_conn_cur gt 4096 }
  default_backend servers

# Within the cluster, in the clear.
frontend internal
  bind :8643
  option forwardfor
  default_backend servers

frontend health
  bind :8404
  monitor-uri /health

backend servers
  option httpchk GET /v1/health
  http-check expect status 200
  default-server check inter 1s fall 2 rise 1 resolvers cluster init-addr none on-marked-down shutdown-sessions
  {{- range $i := until (int .Values.server.replicas) }}
  server server-{{ $i }} {{ include "sojourn.serverHost" (list $ $i) }}:8642
  {{- end }}
{{- end -}}
