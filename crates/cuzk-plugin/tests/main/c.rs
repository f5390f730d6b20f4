//! Small libraries in C, compiled by the system's compiler.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use cuzk_backend::{Backend, BackendError, DeviceInfo, DeviceOptions, StreamId};
use cuzk_plugin::{Loader, PluginBackend, abi, vtable};
use tempfile::TempDir;

/// The crate's folder.
const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Compiles C into a shared library; further arguments go to the compiler.
pub(crate) fn compile(source: &Path, library: &Path, arguments: &[&str]) {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", "-I"]).arg(Path::new(HERE).join("include"));
    let output = command.arg("-o").arg(library).arg(source).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The plugin in C under a backend's name, with macros that break it. The folder is removed with the first value.
pub(crate) fn plugin(name: &str, arguments: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join(Loader::file_name(name).unwrap());
    compile(&Path::new(HERE).join("tests/main/c/plugin.c"), &library, arguments);
    (folder, library)
}

/// The sizes of structures by their names in C, and assertions in C that each structure of the header has the size and
/// the offsets that it has here.
macro_rules! layouts {
    ($($rust:ty = $c:literal { $($field:tt)* })*) => {{
        let (mut sizes, mut assertions) = (BTreeMap::new(), String::new());
        $(
            sizes.insert($c.to_owned(), size_of::<$rust>());
            assertions += &format!("_Static_assert(sizeof({}) == {}, \"{0}\");\n", $c, size_of::<$rust>());
            layouts!(@fields assertions $rust, $c, $($field)*);
        )*
        (sizes, assertions)
    }};
    (@fields $out:ident $rust:ty, $c:literal, $($($path:ident).+),* $(,)?) => {
        $({
            // C has the fields of the header directly in the table.
            let path = concat!($(".", stringify!($path)),+).trim_start_matches('.');
            let path = path.strip_prefix("header.version.").or(path.strip_prefix("header.")).unwrap_or(path);
            let offset = std::mem::offset_of!($rust, $($path).+);
            $out += &format!("_Static_assert(offsetof({}, {path}) == {offset}, \"{0}.{path}\");\n", $c);
        })*
    };
}

/// The sizes that the document tells, by name: rows of names and a size, twice beside each other.
fn documented_sizes() -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(Path::new(HERE).join("../../docs/plugin-abi.md")).unwrap();
    let (_, section) = text.split_once("\n## Structures\n").unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut sizes = BTreeMap::new();
    // After the head and the line below it.
    for row in rows.skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        for pair in cells.chunks(2).filter(|pair| !pair[0].is_empty()) {
            let [names, size] = pair else { panic!("{row}") };
            for name in names.split(", ") {
                let earlier = sizes.insert(name.trim_matches('`').to_owned(), size.parse().unwrap());
                assert_eq!(earlier, None, "{name} is there twice");
            }
        }
    }
    sizes
}

#[test]
fn header_and_document_say_what_the_code_says() {
    let mut source = String::from("#include \"cuzk_plugin.h\"\n#include <stddef.h>\n");
    let (sizes, layouts) = layouts! {
        abi::Slice<u8> = "cuzk_bytes" { data, len }
        abi::Text = "cuzk_text" { data, len }
        abi::Slice<u32> = "cuzk_words32" { data, len }
        abi::Slice<u64> = "cuzk_words64" { data, len }
        abi::ErrorRecord = "cuzk_error" { numbers, texts, owner, release }
        abi::DeviceInfo = "cuzk_device_info" {
            index, compute_units, memory_bytes, uuid, name, driver, features, unusable
        }
        abi::DeviceOptions = "cuzk_device_options" { device_memory_limit, pinned_bytes, threads, reserved }
        abi::PoolUsage = "cuzk_pool_usage" { in_use, reserved, capacity, peak }
        abi::MemoryUsage = "cuzk_memory_usage" { device, pinned, driver_free, uploaded }
        abi::HostMemory = "cuzk_host_memory" { id, data, len }
        abi::NttPlan = "cuzk_ntt_plan" { curve, log_n, direction, order, coset, reserved, shift }
        abi::QuotientPlan = "cuzk_quotient_plan" { curve, log_n }
        abi::MatrixView = "cuzk_matrix_view" {
            curve, row_offset_bytes, coefficient_bytes, reserved, n_columns, n_rows, n_nonzeros, row_offsets, columns,
            coefficients, dictionary
        }
        abi::AssignmentView = "cuzk_assignment_view" {
            curve, reserved, n_variables, ones, wide, rank, wide_scalars
        }
        abi::BasesSpec = "cuzk_bases_spec" { curve, group, residency, multiples, count }
        abi::MsmOperands = "cuzk_msm_operands" { kind, has_density, source, first, len, density }
        abi::FixedBasePlan = "cuzk_fixed_base_plan" { curve, group, count, base }
        abi::MatrixShape = "cuzk_matrix_shape" {
            curve, row_offset_bytes, coefficient_bytes, reserved, n_rows, n_nonzeros, n_coefficients
        }
        abi::AssignmentShape = "cuzk_assignment_shape" { curve, reserved, n_variables, n_ones, n_wide }
        abi::Operation = "cuzk_operation" { kind, scalars, len, ntt, bases, matrix, assignment }
        abi::Workspace = "cuzk_workspace" { least, taken, best, kept, pinned }
        vtable::Vtable = "cuzk_plugin" {
            header.magic, header.version.major, header.version.minor, header.size, name, version, context, devices,
            open, close, info, memory, release, workspace, buffer_create, host_create, stream_create, event_record,
            stream_wait, event_query, event_wait, event_elapsed, upload, download, upload_bytes, download_bytes,
            fill_zero, ntt, quotient, matrix_create, density_create, assignment_create, evaluate, bases_create, bases_write, bases_finish, msm,
            pending_query, pending_wait, fixed_base_mul
        }
    };
    assert_eq!(documented_sizes(), sizes);
    source += &layouts;
    for (name, value) in [
        ("CUZK_MAGIC", abi::MAGIC),
        ("CUZK_ABI_MAJOR", abi::VERSION.major.into()),
        ("CUZK_ABI_MINOR", abi::VERSION.minor.into()),
        ("CUZK_OK", abi::OK.into()),
        ("CUZK_OUT_OF_MEMORY", abi::OUT_OF_MEMORY.into()),
        ("CUZK_DEVICE_LOST", abi::DEVICE_LOST.into()),
        ("CUZK_UNSUPPORTED", abi::UNSUPPORTED.into()),
        ("CUZK_PRECONDITION", abi::PRECONDITION.into()),
        ("CUZK_NO_SUCH_DEVICE", abi::NO_SUCH_DEVICE.into()),
        ("CUZK_SELF_TEST", abi::SELF_TEST.into()),
        ("CUZK_PANICKED", abi::PANICKED.into()),
        ("CUZK_DRIVER", abi::DRIVER.into()),
        ("CUZK_POOL_DEVICE", cuzk_backend::Pool::Device as u64),
        ("CUZK_POOL_PINNED", cuzk_backend::Pool::Pinned as u64),
        ("CUZK_BLS12_381", cuzk_curve::CurveId::Bls12_381 as u64),
        ("CUZK_BN254", cuzk_curve::CurveId::Bn254 as u64),
        ("CUZK_G1", cuzk_curve::GroupId::G1 as u64),
        ("CUZK_G2", cuzk_curve::GroupId::G2 as u64),
        ("CUZK_FORWARD", cuzk_backend::Direction::Forward as u64),
        ("CUZK_INVERSE", cuzk_backend::Direction::Inverse as u64),
        ("CUZK_NATURAL", cuzk_backend::Order::Natural as u64),
        ("CUZK_NATURAL_TO_BIT_REVERSED", cuzk_backend::Order::NaturalToBitReversed as u64),
        ("CUZK_BIT_REVERSED_TO_NATURAL", cuzk_backend::Order::BitReversedToNatural as u64),
        ("CUZK_RESIDENCY_DEVICE", cuzk_backend::Residency::Device as u64),
        ("CUZK_RESIDENCY_PINNED", cuzk_backend::Residency::Pinned as u64),
        ("CUZK_SCALARS_DENSE", abi::MsmOperands::DENSE.into()),
        ("CUZK_SCALARS_ASSIGNMENT", abi::MsmOperands::ASSIGNMENT.into()),
        ("CUZK_HANDLE_BUFFER", abi::HandleKind::Buffer as u64),
        ("CUZK_HANDLE_HOST", abi::HandleKind::Host as u64),
        ("CUZK_HANDLE_STREAM", abi::HandleKind::Stream as u64),
        ("CUZK_HANDLE_EVENT", abi::HandleKind::Event as u64),
        ("CUZK_HANDLE_MATRIX", abi::HandleKind::Matrix as u64),
        ("CUZK_HANDLE_DENSITY", abi::HandleKind::Density as u64),
        ("CUZK_HANDLE_ASSIGNMENT", abi::HandleKind::Assignment as u64),
        ("CUZK_HANDLE_BASES", abi::HandleKind::Bases as u64),
        ("CUZK_HANDLE_PENDING", abi::HandleKind::Pending as u64),
        ("CUZK_OPERATION_NTT", abi::OperationKind::Ntt as u64),
        ("CUZK_OPERATION_QUOTIENT", abi::OperationKind::Quotient as u64),
        ("CUZK_OPERATION_MATRIX", abi::OperationKind::Matrix as u64),
        ("CUZK_OPERATION_DENSITY", abi::OperationKind::Density as u64),
        ("CUZK_OPERATION_ASSIGNMENT", abi::OperationKind::Assignment as u64),
        ("CUZK_OPERATION_EVALUATE", abi::OperationKind::Evaluate as u64),
        ("CUZK_OPERATION_BASES", abi::OperationKind::Bases as u64),
        ("CUZK_OPERATION_MSM", abi::OperationKind::Msm as u64),
        ("CUZK_OPERATION_FIXED_BASE", abi::OperationKind::FixedBase as u64),
    ] {
        source += &format!("_Static_assert({name} == UINT64_C({value}), \"{name}\");\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layout.c");
    std::fs::write(&file, source).unwrap();
    compile(&file, &folder.path().join("layout.so"), &[]);
}

#[test]
fn a_plugin_in_c_works() {
    let (_folder, file) = plugin("c", &[]);
    let backend = PluginBackend::open(&file).unwrap();
    assert_eq!((backend.name(), backend.version(), backend.file()), ("c", "0.1", &*file));
    let expected = DeviceInfo {
        index: 0,
        uuid: "c-0".into(),
        name: "a device in C".into(),
        driver: String::new(),
        compute_units: 3,
        memory_bytes: 1 << 20,
        features: String::new(),
        unusable: String::new(),
    };
    assert_eq!(backend.devices().unwrap(), [expected]);
    let options = DeviceOptions::default();
    let missing = BackendError::NoSuchDevice { backend: "c".into(), wanted: "7".into(), available: "0".into() };
    assert_eq!(backend.open(7, &options).map(drop).unwrap_err(), missing);
    let device = backend.open(0, &options).unwrap();
    assert_eq!(device.memory().unwrap().driver_free, 42);
    let no_room =
        BackendError::OutOfMemory { pool: cuzk_backend::Pool::Device, requested: 5, in_use: 0, capacity: 1 << 20 };
    assert_eq!(device.buffer_create(5), Err(no_room));
    let reason = "this device does nothing".to_owned();
    let unsupported = BackendError::Unsupported { operation: "event_record".into(), reason };
    assert_eq!(device.event_record(StreamId(1)), Err(unsupported));
}

#[test]
fn success_without_a_result_is_an_error_of_the_driver() {
    let delivered = |error: BackendError| match error {
        BackendError::Driver { operation, message } => {
            (operation, message.strip_prefix("the plugin reported success and delivered ").unwrap().to_owned())
        }
        other => panic!("{other}"),
    };
    let open = |arguments: &[&str]| {
        let (_folder, file) = plugin("liar", arguments);
        PluginBackend::open(&file).unwrap().open(0, &DeviceOptions::default())
    };
    assert_eq!(delivered(open(&["-DNULL_DEVICE"]).map(drop).unwrap_err()), ("open".into(), "a null device".into()));
    let (operation, message) = delivered(open(&["-DNO_INFO"]).map(drop).unwrap_err());
    assert_eq!((&*operation, &*message), ("info", "no description of the device"));
    let (operation, message) = delivered(open(&[]).unwrap().host_create(8).unwrap_err());
    assert_eq!(operation, "host_create");
    assert!(message.starts_with("7 bytes at ") && message.ends_with(" for 8"), "{message}");
}
