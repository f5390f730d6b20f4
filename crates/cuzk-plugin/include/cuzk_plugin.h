/* The boundary between the prover and a backend in a shared library, version 2.0.
 *
 * A plugin exports cuzk_backend_plugin and nothing else. Ownership, threads, errors and versions: docs/plugin-abi.md.
 * All structures have the natural layout of a 64-bit little-endian system; fields named "reserved" are zero. */
#ifndef CUZK_PLUGIN_H
#define CUZK_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUZK_MAGIC UINT64_C(0x67756c706b7a7563) /* "cuzkplug" in memory */
#define CUZK_ABI_MAJOR 2
#define CUZK_ABI_MINOR 0

/* What every function returns, and what it then stores in the error record. */
typedef uint32_t cuzk_status;
#define CUZK_OK 0             /* the record is left alone */
#define CUZK_OUT_OF_MEMORY 1  /* numbers: pool, requested, in use, capacity */
#define CUZK_DEVICE_LOST 2    /* texts: device, cause */
#define CUZK_UNSUPPORTED 3    /* texts: operation, reason */
#define CUZK_PRECONDITION 4   /* texts: operation, what, expected, actual */
#define CUZK_NO_SUCH_DEVICE 5 /* texts: backend, wanted, available */
#define CUZK_SELF_TEST 6      /* texts: device, check */
#define CUZK_PANICKED 7       /* texts: operation, message */
#define CUZK_DRIVER 8         /* texts: operation, message */

#define CUZK_POOL_DEVICE 1
#define CUZK_POOL_PINNED 2

#define CUZK_BLS12_381 1
#define CUZK_BN254 2

#define CUZK_G1 1
#define CUZK_G2 2

#define CUZK_FORWARD 1
#define CUZK_INVERSE 2

#define CUZK_NATURAL 1
#define CUZK_NATURAL_TO_BIT_REVERSED 2
#define CUZK_BIT_REVERSED_TO_NATURAL 3

#define CUZK_COSET_ONE 0
#define CUZK_COSET_SHIFT 1

#define CUZK_RESIDENCY_DEVICE 1
#define CUZK_RESIDENCY_PINNED 2

#define CUZK_SCALARS_DENSE 1
#define CUZK_SCALARS_ASSIGNMENT 2

#define CUZK_HANDLE_BUFFER 1
#define CUZK_HANDLE_HOST 2
#define CUZK_HANDLE_STREAM 3
#define CUZK_HANDLE_EVENT 4
#define CUZK_HANDLE_MATRIX 5
#define CUZK_HANDLE_DENSITY 6
#define CUZK_HANDLE_ASSIGNMENT 7
#define CUZK_HANDLE_BASES 8
#define CUZK_HANDLE_PENDING 9

#define CUZK_OPERATION_NTT 1
#define CUZK_OPERATION_QUOTIENT 2
#define CUZK_OPERATION_MATRIX 3
#define CUZK_OPERATION_DENSITY 4
#define CUZK_OPERATION_ASSIGNMENT 5
#define CUZK_OPERATION_EVALUATE 6
#define CUZK_OPERATION_BASES 7
#define CUZK_OPERATION_MSM 8
#define CUZK_OPERATION_FIXED_BASE 9

/* len elements; data may be null if len is 0. */
typedef struct { const uint8_t *data; uint64_t len; } cuzk_bytes;
typedef struct { const uint32_t *data; uint64_t len; } cuzk_words32;
typedef struct { const uint64_t *data; uint64_t len; } cuzk_words64;

/* UTF-8, not terminated. */
typedef cuzk_bytes cuzk_text;

/* Given empty to every call, filled by the plugin as the status says, copied and then released by the host. */
typedef struct {
    uint64_t numbers[4];
    cuzk_text texts[4];
    void *owner;                  /* the argument of release */
    void (*release)(void *owner); /* frees the texts; null if they are static */
} cuzk_error;

typedef struct {
    uint32_t index;
    uint32_t compute_units;
    uint64_t memory_bytes;
    cuzk_text uuid;
    cuzk_text name;
    cuzk_text driver;
    cuzk_text features; /* comma-separated */
    cuzk_text unusable; /* why the device cannot be used; empty if it can */
} cuzk_device_info;

/* A function of the host that copies one description. */
typedef void (*cuzk_device_info_sink)(void *sink_context, const cuzk_device_info *info);

typedef struct {
    uint64_t device_memory_limit; /* 0: what is free, less a margin */
    uint64_t pinned_bytes;        /* 0: the backend's default */
    uint32_t threads;             /* 0: all */
    uint32_t reserved;
} cuzk_device_options;

/* peak: the most bytes taken at a time since the device was opened */
typedef struct { uint64_t in_use, reserved, capacity, peak; } cuzk_pool_usage;

typedef struct {
    cuzk_pool_usage device;
    cuzk_pool_usage pinned;
    uint64_t driver_free;
    uint64_t uploaded; /* bytes copied to the device's memory since it was opened */
} cuzk_memory_usage;

typedef struct {
    uint64_t id;
    uint8_t *data; /* aligned to 4096; stays in place until id is released */
    uint64_t len;  /* exactly what was asked for */
} cuzk_host_memory;

typedef struct {
    uint32_t curve;
    uint32_t log_n;
    uint32_t direction;
    uint32_t order;
    uint32_t coset;
    uint32_t reserved;
    uint64_t shift[4]; /* Montgomery limbs; zero for CUZK_COSET_ONE */
} cuzk_ntt_plan;

typedef struct { uint32_t curve, log_n; } cuzk_quotient_plan;

typedef struct {
    uint32_t curve;
    uint32_t row_offset_bytes;  /* 4 or 8 */
    uint32_t coefficient_bytes; /* 1, 2 or 4 */
    uint32_t reserved;
    uint64_t n_columns;
    uint64_t n_rows;
    uint64_t n_nonzeros;
    const void *row_offsets;  /* n_rows + 1 */
    const uint32_t *columns;  /* n_nonzeros */
    const void *coefficients; /* n_nonzeros indices into the dictionary */
    cuzk_bytes dictionary;    /* scalars; the first is 1, the second -1 */
} cuzk_matrix_view;

typedef struct {
    uint32_t curve;
    uint32_t reserved;
    uint64_t n_variables;
    cuzk_words64 ones;
    cuzk_words64 wide;
    cuzk_words32 rank;
    cuzk_bytes wide_scalars;
} cuzk_assignment_view;

typedef struct {
    uint32_t curve;
    uint32_t group;
    uint32_t residency;
    uint32_t multiples; /* of each point, itself counted */
    uint64_t count;
} cuzk_bases_spec;

typedef struct {
    uint32_t kind;
    uint32_t has_density; /* 0 for CUZK_SCALARS_DENSE */
    uint64_t source;      /* a buffer, or an assignment */
    uint64_t first;
    uint64_t len;
    uint64_t density; /* if has_density */
} cuzk_msm_operands;

typedef struct {
    uint32_t curve;
    uint32_t group;
    uint64_t count;
    cuzk_bytes base; /* one affine point */
} cuzk_fixed_base_plan;

typedef struct {
    uint32_t curve;
    uint32_t row_offset_bytes;  /* 4 or 8 */
    uint32_t coefficient_bytes; /* 1, 2 or 4 */
    uint32_t reserved;
    uint64_t n_rows;
    uint64_t n_nonzeros;
    uint64_t n_coefficients; /* different ones */
} cuzk_matrix_shape;

typedef struct {
    uint32_t curve;
    uint32_t reserved;
    uint64_t n_variables;
    uint64_t n_ones; /* that are 1, or a bound */
    uint64_t n_wide; /* that are neither 0 nor 1, or a bound */
} cuzk_assignment_shape;

/* An operation by its sizes. What the kind does not name is zero. */
typedef struct {
    uint32_t kind;
    uint32_t scalars;                 /* MSM: CUZK_SCALARS_DENSE or CUZK_SCALARS_ASSIGNMENT */
    uint64_t len;                     /* DENSITY: its variables; MSM of an assignment: those of the range */
    cuzk_ntt_plan ntt;                /* NTT, without the shift; QUOTIENT: curve and log_n */
    cuzk_bases_spec bases;            /* BASES, MSM; FIXED_BASE: curve, group, count */
    cuzk_matrix_shape matrix;         /* MATRIX, EVALUATE */
    cuzk_assignment_shape assignment; /* ASSIGNMENT; MSM of an assignment */
} cuzk_operation;

/* Bytes that an operation takes: in device memory at least, with the room asked about, and with any room; what it keeps
 * of that afterwards, until the room is needed; and in pinned memory. */
typedef struct { uint64_t least, taken, best, kept, pinned; } cuzk_workspace;

/* The table. The first four fields are the same in all versions. */
typedef struct {
    uint64_t magic;
    uint32_t major;
    uint32_t minor;
    uint64_t size; /* sizeof(cuzk_plugin) */

    cuzk_text name;
    cuzk_text version;
    const void *context;

    cuzk_status (*devices)(const void *context, cuzk_device_info_sink sink, void *sink_context, cuzk_error *error);
    cuzk_status (*open)(const void *context, uint32_t index, const cuzk_device_options *options, void **device,
                        cuzk_error *error);
    cuzk_status (*close)(void *device, cuzk_error *error);

    cuzk_status (*info)(void *device, cuzk_device_info_sink sink, void *sink_context, cuzk_error *error);
    cuzk_status (*memory)(void *device, cuzk_memory_usage *usage, cuzk_error *error);
    cuzk_status (*release)(void *device, uint32_t kind, uint64_t id, cuzk_error *error);
    cuzk_status (*workspace)(void *device, const cuzk_operation *operation, uint64_t room, cuzk_workspace *workspace,
                             cuzk_error *error);

    cuzk_status (*buffer_create)(void *device, uint64_t bytes, uint64_t *id, cuzk_error *error);
    cuzk_status (*host_create)(void *device, uint64_t bytes, cuzk_host_memory *memory, cuzk_error *error);

    cuzk_status (*stream_create)(void *device, uint64_t *id, cuzk_error *error);
    cuzk_status (*event_record)(void *device, uint64_t stream, uint64_t *id, cuzk_error *error);
    cuzk_status (*stream_wait)(void *device, uint64_t stream, uint64_t event, cuzk_error *error);
    cuzk_status (*event_query)(void *device, uint64_t event, uint32_t *done, cuzk_error *error);
    cuzk_status (*event_wait)(void *device, uint64_t event, cuzk_error *error);
    cuzk_status (*event_elapsed)(void *device, uint64_t from, uint64_t to, uint64_t *nanoseconds, cuzk_error *error);

    cuzk_status (*upload)(void *device, uint64_t stream, uint64_t source, uint64_t source_offset, uint64_t target,
                          uint64_t target_offset, uint64_t bytes, cuzk_error *error);
    cuzk_status (*download)(void *device, uint64_t stream, uint64_t source, uint64_t source_offset, uint64_t target,
                            uint64_t target_offset, uint64_t bytes, cuzk_error *error);
    cuzk_status (*upload_bytes)(void *device, uint64_t stream, const uint8_t *source, uint64_t bytes, uint64_t target,
                                uint64_t offset, cuzk_error *error);
    cuzk_status (*download_bytes)(void *device, uint64_t stream, uint64_t source, uint64_t offset, uint8_t *target,
                                  uint64_t bytes, cuzk_error *error);
    cuzk_status (*fill_zero)(void *device, uint64_t stream, uint64_t buffer, uint64_t offset, uint64_t bytes,
                             cuzk_error *error);

    cuzk_status (*ntt)(void *device, uint64_t stream, const cuzk_ntt_plan *plan, uint64_t buffer, cuzk_error *error);
    cuzk_status (*quotient)(void *device, uint64_t stream, const cuzk_quotient_plan *plan, uint64_t a, uint64_t b,
                            cuzk_error *error);

    cuzk_status (*matrix_create)(void *device, const cuzk_matrix_view *matrix, uint64_t *id, cuzk_error *error);
    cuzk_status (*density_create)(void *device, const uint64_t *bits, uint64_t len, uint64_t *id, cuzk_error *error);
    cuzk_status (*assignment_create)(void *device, uint64_t stream, const cuzk_assignment_view *assignment,
                                     uint64_t *id, cuzk_error *error);
    cuzk_status (*evaluate)(void *device, uint64_t stream, uint64_t matrix, uint64_t assignment, uint64_t out,
                            uint64_t out_len, cuzk_error *error);

    cuzk_status (*bases_create)(void *device, const cuzk_bases_spec *spec, uint64_t *id, cuzk_error *error);
    cuzk_status (*bases_write)(void *device, uint64_t bases, uint64_t first, const uint8_t *points, uint64_t bytes,
                               cuzk_error *error);
    cuzk_status (*bases_finish)(void *device, uint64_t bases, cuzk_error *error);

    cuzk_status (*msm)(void *device, uint64_t stream, uint64_t bases, const cuzk_msm_operands *scalars, uint64_t *id,
                       cuzk_error *error);
    cuzk_status (*pending_query)(void *device, uint64_t pending, uint32_t *done, cuzk_error *error);
    cuzk_status (*pending_wait)(void *device, uint64_t pending, uint8_t *out, uint64_t bytes, cuzk_error *error);

    cuzk_status (*fixed_base_mul)(void *device, uint64_t stream, const cuzk_fixed_base_plan *plan, uint64_t scalars,
                                  uint64_t out, cuzk_error *error);
} cuzk_plugin;

/* The one symbol of a plugin: stores the address of a table that stays valid and unchanged for the life of the process,
 * or fails. May be called more than once. */
#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
cuzk_status cuzk_backend_plugin(const cuzk_plugin **table, cuzk_error *error);

#ifdef __cplusplus
}
#endif
#endif
