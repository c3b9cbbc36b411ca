#!/bin/sh
# Creates the secrets of docker-compose.yml and k8s/overlays/dev: passwords, and the URLs that contain them.
# Existing files are kept, so a second run changes nothing.
#
#   deploy/make-secrets.sh [--rabbitmq] [FOLDER]
#
# --rabbitmq: the broker is RabbitMQ (start it with COMPOSE_PROFILES=rabbitmq), not Redis.
set -eu
umask 077

broker=redis
if [ "${1:-}" = "--rabbitmq" ]; then
    broker=rabbitmq
    shift
fi
folder=${1:-$(dirname "$0")/secrets}
mkdir -p "$folder"

word() {
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

# The folder is private, but its files are readable, because containers' accounts must read mounted files.
keep() {
    if [ ! -e "$folder/$1" ]; then
        cat > "$folder/$1"
        chmod 444 "$folder/$1"
    else
        cat > /dev/null
    fi
}

of() {
    cat "$folder/$1"
}

word | keep postgres_password
word | keep runtime_password
word | keep gateway_password
for account in worker gateway flower sender scaler probe; do
    word | keep "${account}_redis_password"
done
word | keep rabbitmq_password
word | keep grafana_password
printf 'parley:%s' "$(word)" | keep flower_basic_auth
printf '' | keep openai_api_key
# The migration owns the tables and creates the two other users, each with the privileges that its processes need.
printf 'postgresql://parley:%s@postgres:5432/parley' "$(of postgres_password)" | keep owner_database_url
printf 'postgresql://worker:%s@postgres:5432/parley' "$(of runtime_password)" | keep runtime_database_url
printf 'postgresql://gateway:%s@postgres:5432/parley' "$(of gateway_password)" | keep gateway_database_url
# Each kind of process has its own Redis account.
for account in worker gateway flower sender probe; do
    printf 'redis://parley-%s:%s@redis:6379/0' "$account" "$(of "${account}_redis_password")" | keep "${account}_redis_url"
done
sed "$(for account in worker gateway flower sender scaler probe; do
    printf 's/@parley-%s@/%s/;' "$account" "$(of "${account}_redis_password")"
done)" "$(dirname "$0")/../orchestrator/adapters/redis/users.acl" | keep redis.acl
# KEDA connects to the stores from its own namespace.
printf 'postgresql://worker:%s@postgres.parley-dev.svc:5432/parley?sslmode=disable' "$(of runtime_password)" |
    keep scaler_database_url
printf 'redis.parley-dev.svc:6379' | keep scaler_redis_address
printf 'parley-scaler' | keep scaler_redis_username
keep rabbitmq.conf <<CONF
default_user = parley
default_pass = $(of rabbitmq_password)
default_vhost = /
CONF
if [ "$broker" = rabbitmq ]; then
    printf 'amqp://parley:%s@rabbitmq:5672//' "$(of rabbitmq_password)" | keep broker_url
else
    printf '' | keep broker_url # empty: the broker is Redis, and each process has a separate Redis URL
fi
echo "The secrets are in $folder; put a model's key into $folder/openai_api_key if you have one." >&2
