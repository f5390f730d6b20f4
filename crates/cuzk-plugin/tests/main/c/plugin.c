/* A plugin in C with one device that can be opened and described and does nothing else; or, with one of the macros
 * below, one that is broken in one way. */
#include "cuzk_plugin.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static cuzk_text text(const char *s) {
    cuzk_text t = {(const uint8_t *)s, strlen(s)};
    return t;
}

/* Static texts need no release. */
static cuzk_status unsupported(const char *operation, cuzk_error *error) {
    error->texts[0] = text(operation);
    error->texts[1] = text("this device does nothing");
    return CUZK_UNSUPPORTED;
}

static void describe(cuzk_device_info_sink sink, void *sink_context) {
    cuzk_device_info info = {0};
    info.compute_units = 3;
    info.memory_bytes = 1 << 20;
    info.uuid = text("c-0");
    info.name = text("a device in C");
    sink(sink_context, &info);
}

static cuzk_status devices(const void *context, cuzk_device_info_sink sink, void *sink_context, cuzk_error *error) {
    (void)context, (void)error;
    describe(sink, sink_context);
    return CUZK_OK;
}

/* A text of its own size, owned by the plugin until the host releases it. */
static cuzk_status open_device(const void *context, uint32_t index, const cuzk_device_options *options, void **device,
                               cuzk_error *error) {
    (void)options;
    if (index != 0) {
        char *wanted = malloc(2);
        wanted[0] = (char)('0' + index % 10);
        wanted[1] = 0;
        error->texts[0] = text("c");
        error->texts[1] = text(wanted);
        error->texts[2] = text("0");
        error->owner = wanted;
        error->release = free;
        return CUZK_NO_SUCH_DEVICE;
    }
#ifndef NULL_DEVICE
    *device = (void *)context;
#endif
    return CUZK_OK;
}

static cuzk_status close_device(void *device, cuzk_error *error) {
    (void)device, (void)error;
    return CUZK_OK;
}

static cuzk_status info(void *device, cuzk_device_info_sink sink, void *sink_context, cuzk_error *error) {
    (void)device, (void)error;
#ifndef NO_INFO
    describe(sink, sink_context);
#endif
    return CUZK_OK;
}

static cuzk_status memory(void *device, cuzk_memory_usage *usage, cuzk_error *error) {
    (void)device, (void)error;
    usage->device.capacity = 1 << 20;
    usage->driver_free = 42;
    return CUZK_OK;
}

static cuzk_status release(void *device, uint32_t kind, uint64_t id, cuzk_error *error) {
    (void)device, (void)kind, (void)id, (void)error;
    return CUZK_OK;
}

static cuzk_status buffer_create(void *device, uint64_t bytes, uint64_t *id, cuzk_error *error) {
    (void)device, (void)id;
    error->numbers[0] = CUZK_POOL_DEVICE;
    error->numbers[1] = bytes;
    error->numbers[2] = 0;
    error->numbers[3] = 1 << 20;
    return CUZK_OUT_OF_MEMORY;
}

/* One byte less than was asked for. */
static cuzk_status host_create(void *device, uint64_t bytes, cuzk_host_memory *memory, cuzk_error *error) {
    static uint8_t data[8];
    (void)device, (void)error;
    memory->id = 1;
    memory->data = data;
    memory->len = bytes - 1;
    return CUZK_OK;
}

#define UNSUPPORTED(name, ...)                                          \
    static cuzk_status name(void *device, __VA_ARGS__, cuzk_error *error) { \
        (void)device;                                                   \
        return unsupported(#name, error);                               \
    }

UNSUPPORTED(workspace, const cuzk_operation *operation, uint64_t room, cuzk_workspace *w)
UNSUPPORTED(stream_create, uint64_t *id)
UNSUPPORTED(event_record, uint64_t a, uint64_t *id)
UNSUPPORTED(stream_wait, uint64_t a, uint64_t b)
UNSUPPORTED(event_query, uint64_t a, uint32_t *done)
UNSUPPORTED(event_wait, uint64_t a)
UNSUPPORTED(event_elapsed, uint64_t a, uint64_t b, uint64_t *nanoseconds)
UNSUPPORTED(upload, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
UNSUPPORTED(download, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
UNSUPPORTED(upload_bytes, uint64_t a, const uint8_t *b, uint64_t c, uint64_t d, uint64_t e)
UNSUPPORTED(download_bytes, uint64_t a, uint64_t b, uint64_t c, uint8_t *d, uint64_t e)
UNSUPPORTED(fill_zero, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
UNSUPPORTED(ntt, uint64_t a, const cuzk_ntt_plan *plan, uint64_t b)
UNSUPPORTED(quotient, uint64_t a, const cuzk_quotient_plan *plan, uint64_t b, uint64_t c)
UNSUPPORTED(matrix_create, const cuzk_matrix_view *matrix, uint64_t *id)
UNSUPPORTED(density_create, const uint64_t *bits, uint64_t len, uint64_t *id)
UNSUPPORTED(assignment_create, uint64_t a, const cuzk_assignment_view *assignment, uint64_t *id)
UNSUPPORTED(evaluate, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
UNSUPPORTED(bases_create, const cuzk_bases_spec *spec, uint64_t *id)
UNSUPPORTED(bases_write, uint64_t a, uint64_t b, const uint8_t *c, uint64_t d)
UNSUPPORTED(bases_finish, uint64_t a)
UNSUPPORTED(msm, uint64_t a, uint64_t b, const cuzk_msm_operands *scalars, uint64_t *id)
UNSUPPORTED(pending_query, uint64_t a, uint32_t *done)
UNSUPPORTED(pending_wait, uint64_t a, uint8_t *out, uint64_t b)
UNSUPPORTED(fixed_base_mul, uint64_t a, const cuzk_fixed_base_plan *plan, uint64_t b, uint64_t c)

#ifndef MAGIC
#define MAGIC CUZK_MAGIC
#endif
#ifndef MAJOR
#define MAJOR CUZK_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR CUZK_ABI_MINOR
#endif
#ifndef SIZE
#define SIZE sizeof(cuzk_plugin)
#endif

/* A newer minor version has more behind the end. */
static struct {
    cuzk_plugin known;
    void *appended[4];
} table = {{
    MAGIC, MAJOR, MINOR, SIZE, {(const uint8_t *)"c", 1}, {(const uint8_t *)"0.1", 3}, &table,
    devices, open_device, close_device, info, memory, release, workspace, buffer_create, host_create,
    stream_create, event_record, stream_wait, event_query, event_wait, event_elapsed,
    upload, download, upload_bytes, download_bytes, fill_zero, ntt, quotient,
    matrix_create, density_create, assignment_create, evaluate,
    bases_create, bases_write, bases_finish, msm, pending_query, pending_wait, fixed_base_mul,
}, {0}};

#ifdef NEEDS
extern int NEEDS(void);
#endif

#ifndef NO_ENTRY
cuzk_status cuzk_backend_plugin(const cuzk_plugin **out, cuzk_error *error) {
    (void)error;
#ifdef NEEDS
    if (NEEDS()) return CUZK_DRIVER;
#endif
#ifdef NULL_FUNCTION
    table.known.NULL_FUNCTION = NULL;
#endif
#ifdef ENTRY_FAILS
    error->texts[0] = text("load");
    error->texts[1] = text("no such driver");
    return CUZK_DRIVER;
#endif
#ifndef NO_TABLE
    *out = &table.known;
#endif
    return CUZK_OK;
}
#endif
